"""Search for statistics and column indexes in clear by their bytes alone.

    Statistics   [18 max 18 min] (16|36) nulls [16 distinct] (28|18) max_value 18 min_value ... 00
    ColumnIndex  19 <list of bools> 19 <list of min_values> 19 <list of max_values> 15 order ... 00

Thrift's compact protocol; parquet.thrift, Statistics and ColumnIndex.  A binary value is its
length, a varint, and its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.structures.metadata import ColumnIndex
from secure_bloom.parquet.structures.records import measured_record

_VARINT = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_STATISTICS = re.compile(rb"[\x16\x36]%b(?:\x28|\x16%b\x18)" % (_VARINT, _VARINT))
_AFTER_BOUNDS = re.compile(rb"[\x11\x12]{0,2}(?:[\x16\x26\x36]%b)?\x00" % _VARINT)
_INDEX = re.compile(rb"\x19(?:[\x11-\xe2]|[\xf1\xf2](%b))[\x00-\x02]" % _VARINT)
#: The types of bools in a list, and what a list of binary values begins with.
_BOOLS, _BINARIES = (1, 2), frozenset(bytes([size << 4 | 8]) for size in range(1, 16))
#: The widths of numbers; a bound of another length counts if it is a text.
_WIDTHS = frozenset({4, 8, 12, 16})
#: Longer bounds and indexes are not looked for.
_LONGEST_BOUND, _LONGEST_INDEX = 4096, 64 * 1024
#: Chance alone makes some 20 places in 4 MiB look like the beginning of an index.
_MOST_PLACES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalBounds:
    """The bounds that may be in clear: those of columns in clear, also in older footers or indexes.

    ``indexes`` are the offsets of column indexes that the footer names, which have a check of their
    own.
    """

    indexes: frozenset[int | None]
    bounds: frozenset[bytes | None]

    def explain(self, index: ColumnIndex) -> bool:
        """Return whether an index, by its bounds, can be an older one of a column in clear."""
        # One page has the smallest value of the chunk, one the largest.
        sides = index.min_values, index.max_values
        return all(not self.bounds.isdisjoint(values) for values in sides)


def has_stray_bounds(data: bytes, offset: int, legal: LegalBounds) -> bool:
    """Return whether ``data``, read at ``offset``, has bounds in clear that are not ``legal``.

    Raises FormatError for data made to look like thousands of indexes.
    """
    found = (bounds for bounds in _statistics_in(data) if not legal.bounds.issuperset(bounds))
    return any(True for _ in found) or _has_stray_index(data, offset, legal)


def _has_stray_index(data: bytes, offset: int, legal: LegalBounds) -> bool:
    left = _MOST_PLACES
    for match in _INDEX.finditer(data):
        at = match.start()
        if offset + at in legal.indexes:
            continue
        if not _has_lists(data, match):
            continue
        if left == 0:
            raise FormatError("thousands of places that nothing refers to begin as an index does")
        left -= 1
        index = _index_at(data, at)
        if index is not None and not legal.explain(index):
            return True
    return False


def _has_lists(data: bytes, match: re.Match[bytes]) -> bool:
    """Return whether a list of bools is followed by a list of binary values."""
    header = data[match.start() + 1]
    if header & 0x0F not in _BOOLS:
        return False
    pages = header >> 4 if match[1] is None else _varint(match[1])
    end = match.end() - 1 + pages
    return data[end : end + 1] == b"\x19" and data[end + 1 : end + 2] in _BINARIES


def _varint(encoded: bytes) -> int:
    return sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(encoded))


def _index_at(data: bytes, at: int) -> ColumnIndex | None:
    """Return the column index that begins at an offset, if it has bounds."""
    try:
        index, _ = measured_record(ColumnIndex, data[at : at + _LONGEST_INDEX])
    except SecureBloomError:
        return None
    pages = len(index.null_pages)
    shows = any(not is_null for is_null in index.null_pages)
    is_whole = shows and pages == len(index.min_values) == len(index.max_values)
    return index if is_whole else None


def _statistics_in(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    for match in _STATISTICS.finditer(data):
        high, end = _binary(data, match.end())
        if high is None or data[end : end + 1] != b"\x18":
            continue
        low, end = _binary(data, end + 1)
        if low is not None and _AFTER_BOUNDS.match(data, end) and _are_bounds(low, high):
            yield low, high


def _are_bounds(low: bytes, high: bytes) -> bool:
    """Return whether two values can be bounds of one column. Few random values can."""
    if len(low) == len(high) and len(low) in _WIDTHS:
        return True
    return bool(low) and low <= high and _is_text(low) and _is_text(high)


def _is_text(value: bytes) -> bool:
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _binary(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Return the binary value at an offset, or None, and where it ends."""
    length = 0
    for shift in range(0, 14, 7):
        byte = data[at] if at < len(data) else 0xFF
        at, length = at + 1, length | (byte & 0x7F) << shift
        if byte < 0x80:
            is_whole = length <= _LONGEST_BOUND and at + length <= len(data)
            return (data[at : at + length] if is_whole else None), at + length
    return None, at
