"""The filter and the key range of a base file <-> the footer's key-value metadata.

    org.apache.hudi.bloomfilter        the filter; com.uber.hoodie.bloomfilter in older files
    hoodie_bloom_filter_type_code      DYNAMIC_V0; absent for SIMPLE
    hoodie_min_record_key, hoodie_max_record_key      absent in a file without keys
    secure_bloom.hudi.record_key_column       our own: the column, where not _hoodie_record_key

They are as secret as the footer they stand in: a plaintext footer shows anyone two record keys, and
answers for every other whether it may be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import java_order
from secure_bloom.hudi.record_keys.simple import SimpleBloomFilter
from secure_bloom.parquet.structures.metadata import FileMetaData, KeyValue, SchemaElement

FILTER = "org.apache.hudi.bloomfilter"
OLD_FILTER = "com.uber.hoodie.bloomfilter"
TYPE_CODE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
COLUMN = "secure_bloom.hudi.record_key_column"
_NAMES = {FILTER, OLD_FILTER, TYPE_CODE, MIN_KEY, MAX_KEY, COLUMN}
#: Where Hudi keeps the record key, and what its entries are of.
RECORD_KEY: Final = "_hoodie_record_key"

FILTER_TYPES: dict[str, type[HudiBloomFilter]] = {
    kind.TYPE_CODE: kind for kind in (SimpleBloomFilter, DynamicBoundedBloomFilter)
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeyRange:
    """The smallest and the largest record key, in Java's order of strings."""

    min_key: str
    max_key: str

    def bounds(self) -> tuple[bytes, bytes]:
        """Both ends, as :func:`java_order` compares keys."""
        return java_order(self.min_key.encode()), java_order(self.max_key.encode())


@dataclass(frozen=True, kw_only=True, repr=False)
class RecordKeyEntry:
    """What a footer says of its file's record keys; the filter stays text until it is asked for.

    ``column`` is the one that filter and range are of; None where nothing says which it is.
    """

    filter_text: str | None
    column: str | None
    type_code: str = SimpleBloomFilter.TYPE_CODE
    range: KeyRange | None = None

    @cached_property
    def filter(self) -> HudiBloomFilter | None:
        """The filter, or None where the file has none.

        Raises FormatError for a damaged one, UnsupportedFeatureError for a type not known here.
        """
        if self.filter_text is None:
            return None
        # Hudi compares type codes without regard to case.
        kind = FILTER_TYPES.get(self.type_code.upper())
        if kind is None:
            raise UnsupportedFeatureError(
                f"{TYPE_CODE} is not one known here: {', '.join(sorted(FILTER_TYPES))}"
            )
        return kind.parse(self.filter_text)


def read_entry(metadata: FileMetaData) -> RecordKeyEntry | None:
    """What the footer says of record keys; None where it says nothing."""
    every = metadata.key_value_metadata or []
    pairs = {name: pair.value for pair in every if (name := _name(pair)) in _NAMES}
    text = pairs.get(FILTER) or pairs.get(OLD_FILTER)
    smallest, largest = pairs.get(MIN_KEY), pairs.get(MAX_KEY)
    # One end alone says nothing, as for Hudi.
    both = smallest is not None and largest is not None
    key_range = KeyRange(min_key=smallest or "", max_key=largest or "") if both else None
    if text is None and key_range is None:
        return None
    type_code = pairs.get(TYPE_CODE) or SimpleBloomFilter.TYPE_CODE
    # A name that is empty is no column's, so such an entry is never trusted.
    column = pairs[COLUMN] or "" if COLUMN in pairs else _hudi_column(metadata.schema)
    return RecordKeyEntry(filter_text=text, column=column, type_code=type_code, range=key_range)


def read_entry_of(metadata: FileMetaData, column: str) -> RecordKeyEntry | None:
    """What the footer says of the keys in ``column``.

    None also where it speaks of another column, or does not say of which: then it rules out
    nothing.
    """
    entry = read_entry(metadata)
    return entry if entry is not None and entry.column == column else None


def _hudi_column(schema: list[SchemaElement]) -> str | None:
    """What an entry is of that names no column: the record key, where the file has it.

    Other writers may leave it out of the file, and take the keys from columns of their choice.
    """
    below = 0
    for element in schema[1:]:
        if below == 0 and element.name == RECORD_KEY:
            return RECORD_KEY
        below += (element.num_children or 0) - (below > 0)
    return None


def write_entry(
    metadata: FileMetaData,
    bloom_filter: HudiBloomFilter,
    key_range: KeyRange | None,
    *,
    column: str = RECORD_KEY,
) -> None:
    """Enter a filter and a range of ``column``, in the place of those that are there."""
    every = metadata.key_value_metadata or []
    others = [pair for pair in every if _name(pair) not in _NAMES]
    pairs = {FILTER: bloom_filter.serialize()}
    if not isinstance(bloom_filter, SimpleBloomFilter):
        pairs[TYPE_CODE] = bloom_filter.TYPE_CODE
    if key_range is not None:
        pairs |= {MIN_KEY: key_range.min_key, MAX_KEY: key_range.max_key}
    if column != RECORD_KEY:
        pairs[COLUMN] = column
    new = [KeyValue.of(key=key, value=value) for key, value in pairs.items()]
    metadata.key_value_metadata = [*others, *new]


def _name(pair: KeyValue) -> str | None:
    """The pair's name; None for one that is not UTF-8, which is nobody's here."""
    try:
        return pair.key
    except FormatError:
        return None
