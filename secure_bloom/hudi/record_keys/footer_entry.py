"""Read and write the filter and the key range in the footer's key-value metadata.

    org.apache.hudi.bloomfilter        the filter; com.uber.hoodie.bloomfilter in older files
    hoodie_bloom_filter_type_code      DYNAMIC_V0; absent for SIMPLE
    hoodie_min_record_key, hoodie_max_record_key      absent in a file without keys
    secure_bloom.hudi.record_key_column       our own: the column, unless _hoodie_record_key

These entries are as secret as their footer: a plaintext footer shows two record keys to anyone, and
lets anyone test whether any other key may be in the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from secure_bloom.errors import KeyUnavailableError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter, SimpleBloomFilter
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import java_order
from secure_bloom.parquet.footer.edit import with_texts
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import KeyValue
from secure_bloom.parquet.structures.splices import encoded

FILTER = "org.apache.hudi.bloomfilter"
OLD_FILTER = "com.uber.hoodie.bloomfilter"
TYPE_CODE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
COLUMN = "secure_bloom.hudi.record_key_column"
#: The names of all of them.
RECORD_KEY_TEXTS = frozenset({FILTER, OLD_FILTER, TYPE_CODE, MIN_KEY, MAX_KEY, COLUMN})
#: Replaces, in a decoded text, bytes that are not UTF-8.
_NOT_UTF8: Final = "\ufffd"
#: The column where Hudi stores the record key; Hudi's entries are about this column.
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
        """Return both keys as the bytes that :func:`java_order` compares."""
        return java_order(self.min_key.encode()), java_order(self.max_key.encode())


# Without slots: the filter, once parsed, is kept in the instance.
@dataclass(frozen=True, kw_only=True, repr=False)
class RecordKeyEntry:
    """The entries of a footer about record keys. The filter stays a text until it is needed.

    ``column`` is the column of filter and range, or None if the footer does not name it.
    """

    filter_text: str | None
    column: str | None
    type_code: str = SimpleBloomFilter.TYPE_CODE
    range: KeyRange | None = None

    @cached_property
    def filter(self) -> HudiBloomFilter | None:
        """The filter, or None if the file has none.

        Raises FormatError for a damaged filter, UnsupportedFeatureError for an unknown type.
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

    @property
    def is_empty(self) -> bool:
        """Whether there is no range and the filter contains no key.

        Raises the errors of ``filter``.
        """
        return self.range is None and self.filter is not None and self.filter.fill() == 0


def read_entry(footer: Footer) -> RecordKeyEntry | None:
    """Return the footer's entries about record keys, or None if it has none."""
    every = footer.metadata.key_value_metadata or []
    # Of a name that occurs twice the last text counts, as in the map that parquet-java makes.
    pairs = {pair.key: pair.value for pair in every if pair.key in RECORD_KEY_TEXTS}
    # The newer name counts if both are present.
    text = pairs.get(FILTER) or pairs.get(OLD_FILTER)
    smallest, largest = pairs.get(MIN_KEY), pairs.get(MAX_KEY)
    # Like Hudi, ignore a range with one end only; and one that is not UTF-8, hence no longer exact.
    both = not any(end is None or _NOT_UTF8 in end for end in (smallest, largest))
    key_range = KeyRange(min_key=smallest or "", max_key=largest or "") if both else None
    if text is None and key_range is None:
        return None
    type_code = pairs.get(TYPE_CODE) or SimpleBloomFilter.TYPE_CODE
    # No column has an empty name, so an entry with one is never used.
    column = pairs[COLUMN] or "" if COLUMN in pairs else _hudi_column(footer.leaves)
    return RecordKeyEntry(filter_text=text, column=column, type_code=type_code, range=key_range)


def read_entry_of(footer: Footer, column: str) -> RecordKeyEntry | None:
    """Return the footer's entries about the keys in ``column``, or None.

    Entries of another column, or of a column that is not named, rule nothing out and are not
    returned. An entry of Hudi's own key column is not returned either if it is empty in a file
    with rows, or if the column may have nulls: a table may leave the column null, and then its
    rows have keys that the filter lacks.
    """
    entry = read_entry(footer)
    if entry is None or entry.column != column:
        return None
    if column == RECORD_KEY and any(footer.rows) and (entry.is_empty or _may_have_nulls(footer)):
        return None
    return entry


def _may_have_nulls(footer: Footer) -> bool:
    """Return whether rows may have no record key: nulls are counted, or the count is left out.

    Return False if the key of the column is missing: its statistics are not known then.
    """
    ordinal = next((i for i, it in enumerate(footer.leaves) if it.path == (RECORD_KEY,)), None)
    if ordinal is None or footer.leaves[ordinal].is_required:
        return False
    with suppress(KeyUnavailableError):
        for row_group in range(len(footer.row_groups)):
            found = footer.chunk(row_group, ordinal).meta_data.statistics
            if found is None or found.null_count != 0:
                return True
    return False


def _hudi_column(leaves: Iterable[Leaf]) -> str | None:
    """Return the column of an entry that names no column: Hudi's record key, if the file has it.

    Other writers may leave that column out, and take the keys from columns of their choice.
    """
    return RECORD_KEY if any(leaf.path[0] == RECORD_KEY for leaf in leaves) else None


def with_entry(
    footer: Footer,
    bloom_filter: HudiBloomFilter,
    key_range: KeyRange | None,
    *,
    column: str = RECORD_KEY,
) -> bytes:
    """Return the FileMetaData of ``footer`` with a filter and a range of ``column``.

    Older entries are removed.
    """
    pairs = {FILTER: bloom_filter.serialize()}
    # Hudi takes a missing code for SIMPLE.
    if not isinstance(bloom_filter, SimpleBloomFilter):
        pairs[TYPE_CODE] = bloom_filter.TYPE_CODE
    if key_range is not None:
        pairs |= {MIN_KEY: key_range.min_key, MAX_KEY: key_range.max_key}
    if column != RECORD_KEY:
        pairs[COLUMN] = column
    new = [encoded(KeyValue, key=key, value=value) for key, value in pairs.items()]
    # An entry under the old name goes too: its readers would rule out keys by a stale filter.
    return with_texts(footer.plain, new, without=RECORD_KEY_TEXTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyDescription:
    """A filter's type, bytes of bits, shape, false positives and share of set bits.

    ``rows`` is the number of bit vectors, which Hudi calls rows: a simple filter has one. ``nr`` is
    the number of keys that fill one row of a dynamic filter, and ``current`` the number of keys in
    its last row. ``range`` says whether the footer has the smallest and the largest key. ``column``
    is the column of filter and range, or None if the footer does not name it. ``type`` is None
    without a filter, and for a filter that cannot be read: ``note`` says why.
    """

    column: str | None = None
    type: str | None = None
    bytes: int | None = None
    rows: int | None = None
    vector_size: int | None = None
    num_hashes: int | None = None
    hash: str | None = None
    nr: int | None = None
    current: int | None = None
    fpp: float | None = None
    fill: float | None = None
    range: bool = False
    note: str | None = None


def describe_record_keys(footer: Footer) -> RecordKeyDescription | None:
    """Return a description of the footer's entries about record keys, or None if it has none.

    Raises none of this package's errors.
    """
    column, has_range = None, False
    try:
        entry = read_entry(footer)
        if entry is None:
            return None
        # Kept before the filter is parsed, which may fail: they are reported all the same.
        column, has_range = entry.column, entry.range is not None
        if entry.filter is None:
            return RecordKeyDescription(column=column, range=has_range)
        return _describe(entry.filter, column, has_range=has_range)
    except SecureBloomError as error:
        return RecordKeyDescription(column=column, range=has_range, note=error.message)


def _describe(
    bloom_filter: HudiBloomFilter, column: str | None, *, has_range: bool
) -> RecordKeyDescription:
    dynamic = bloom_filter if isinstance(bloom_filter, DynamicBoundedBloomFilter) else None
    return RecordKeyDescription(
        column=column,
        type=bloom_filter.TYPE_CODE,
        bytes=bloom_filter.byte_count,
        rows=bloom_filter.rows,
        vector_size=bloom_filter.vector_size,
        num_hashes=bloom_filter.num_hashes,
        hash=bloom_filter.hash_type.name.lower(),
        nr=None if dynamic is None else dynamic.nr,
        current=None if dynamic is None else dynamic.current,
        fpp=bloom_filter.fpp(),
        fill=bloom_filter.fill(),
        range=has_range,
    )
