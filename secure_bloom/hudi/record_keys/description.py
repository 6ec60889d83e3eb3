"""A footer's record key filter in numbers, without any record key."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.errors import SecureBloomError
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
from secure_bloom.hudi.record_keys.footer_entry import read_entry
from secure_bloom.parquet.footer.opened import Footer


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKeyDescription:
    """A filter's type, bytes of bits, shape, false positives and share of set bits.

    ``nr`` is the number of keys that fill a row of a dynamic filter, and ``current`` the number of
    keys in its last row.  ``range`` says whether the footer has the smallest and the largest key.
    ``column`` is the column of both, or None if the footer does not name it.  ``type`` is None
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
        # Kept before the filter is parsed, which may fail: they are told all the same.
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
