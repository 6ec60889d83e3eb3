"""Check the bytes that nothing refers to: a rewrite may have left filters or pages in clear.

Column chunks, filters and the footer own the bytes that their metadata names; with ``check_values``
a chunk's bytes after its last page are searched too.  If a column's
metadata cannot be read, its whole row group counts as owned.  All other bytes are searched, up to
64 MiB, also page indexes: a forged length must not hide a filter.

A stray filter may be an older one of a column in clear, which reveals nothing new.  It has the same
values as the present filter, or some of them, and may have another size.  Folded to the same size,
the present filter has all bits of the older one.

Statistics and column indexes in clear are found by their bytes alone (Thrift's compact protocol;
parquet.thrift, Statistics and ColumnIndex).  A binary value is its length, a varint, and its bytes:

    Statistics   [18 max 18 min] (16|36) nulls [16 distinct] (28|18) max_value 18 min_value ... 00
    ColumnIndex  19 <list of bools> 19 <list of min_values> 19 <list of max_values> 15 order ... 00
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secure_bloom.auditing.checks.column_filters import MOST_FILTERS
from secure_bloom.auditing.checks.filter_search import (
    HEADER_SIZE,
    LONGEST_HEADER,
    CrowdedError,
    has_plain_page,
    plain_filter,
    plain_filter_size,
    plain_filters,
)
from secure_bloom.auditing.checks.subjects import (
    ChunkSubject,
    FileSubject,
    Findings,
    FooterSubject,
)
from secure_bloom.auditing.rules.filter_rules import FILTER_STRAY
from secure_bloom.auditing.rules.leak_rules import BOUNDS_STRAY, PAGES_STRAY
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_FILTER, UNCHECKED_GAPS
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import StoredBloomFilter, read_bloom_filter
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.dictionary_pages import end_of_pages
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import MAGIC
from secure_bloom.parquet.structures.metadata import ColumnIndex, ColumnMetaData
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.storage import InputFile

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
    """The bounds of columns in clear. Older footers and indexes may have them in clear too.

    ``indexes`` are the offsets of column indexes that the footer names. Another check reads them.
    """

    indexes: frozenset[int | None]
    bounds: frozenset[bytes | None]

    def explain(self, index: ColumnIndex) -> bool:
        """Return whether an index, by its bounds, can be an older index of a column in clear."""
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


#: A filter that lets more than half of absent values pass equals others by chance.
_USELESS = 0.5
#: The chance that a filter has all bits of a filter of other values must be below this.
_CHANCE = 1e-3
_BITS_PER_VALUE = 8
#: The most bytes of filters that are compared bit by bit; the rest counts as unexplained.
_MOST_COMPARED = 1 << 30

#: Blocks of a filter, and a digest of its bits.
_Level = tuple[int, bytes]


class ClearFilters:
    """The filters of a file's columns in clear. Each is read once."""

    def __init__(self, filters: Iterable[SplitBlockBloomFilter]) -> None:
        self._filters = tuple(filters)
        levels = [list(map(_level, _foldings(each))) for each in self._filters]
        self._whole = {each[0] for each in levels if each}
        self._folded = {level for each in levels for level in each}
        self._left = _MOST_COMPARED

    def explain(self, found: SplitBlockBloomFilter) -> bool:
        """Return whether ``found`` reveals nothing new.

        That is so if its values are values of these filters, or if it has none.
        """
        # Empty or full: it says the same of every value.
        if found.fill() in (0.0, 1.0):
            return True
        levels = list(map(_level, _foldings(found)))
        # One way the stray filter is larger and folds to a present one, the other way it is
        # smaller.
        if not self._whole.isdisjoint(levels) or not self._folded.isdisjoint(levels[:1]):
            return True
        return any(self._is_part(found, each) for each in self._filters)

    def _is_part(self, found: SplitBlockBloomFilter, other: SplitBlockBloomFilter) -> bool:
        """Return whether ``other`` has all bits of ``found``, and not by chance."""
        # A file may hold any number of stray filters, each compared with each present one.
        self._left -= max(found.byte_count, other.byte_count)
        smaller = min(found.block_count, other.block_count)
        one, all_ = _folded_to(found, smaller), _folded_to(other, smaller)
        if self._left < 0 or one is None or all_ is None:
            return False
        bits = _bits(one)
        values = max(1.0, int(np.bitwise_count(bits).sum()) / _BITS_PER_VALUE)
        return not (bits & ~_bits(all_)).any() and float(all_.fpp() ** values) < _CHANCE


def _foldings(made: SplitBlockBloomFilter) -> Iterator[SplitBlockBloomFilter]:
    """Yield the filter and its foldings, until a folding rules no value out."""
    while made.fpp() <= _USELESS:
        yield made
        if made.block_count % 2:
            return
        made = made.folded()


def _folded_to(made: SplitBlockBloomFilter, block_count: int) -> SplitBlockBloomFilter | None:
    """Return the filter folded to ``block_count`` blocks, or None if folding cannot give that."""
    while made.block_count > block_count and made.block_count % 2 == 0:
        made = made.folded()
    return made if made.block_count == block_count else None


def _level(made: SplitBlockBloomFilter) -> _Level:
    return made.block_count, hashlib.sha256(made.to_bytes()).digest()


def _bits(made: SplitBlockBloomFilter) -> NDArray[np.uint64]:
    return np.frombuffer(made.to_bytes(), np.uint64)


#: From an offset up to, not including, another.
Region = tuple[int, int]

_MOST_SEARCHED = 64 * 1024 * 1024
_STEP = 4 * 1024 * 1024
#: If the footer cannot be read, filters are looked for in this many bytes before it.
_TAIL = 1024 * 1024
_WHAT = "a Bloom filter in clear is at a place to which nothing refers"
_WHAT_BOUNDS = "smallest and largest values in clear are at a place to which nothing refers"
_CROWDED = "bytes that nothing refers to, made to look like thousands of headers of filters"
_WHAT_PAGE = "a page in clear is at a place to which nothing refers"


def check_gaps(subject: FooterSubject) -> Findings:
    """Check that the gaps of a file with sensitive columns contain no filter or page in clear."""
    if not subject.sensitive():
        return
    left = _MOST_SEARCHED
    known: ClearFilters | None = None
    legal = _legal_bounds(subject)
    for start, end in _gaps(_owned(subject), subject.of.tail.offset):
        if left < end - start:
            yield subject.of.finding(UNCHECKED_GAPS, "more than 64 MiB that nothing refers to")
            return
        left -= end - start
        for at, data in _steps(subject.of.file, start, end):
            if has_plain_page(data):
                yield subject.of.finding(PAGES_STRAY, _WHAT_PAGE)
            # Pages have bounds in their headers.
            elif has_stray_bounds(data, at, legal):
                yield subject.of.finding(BOUNDS_STRAY, _WHAT_BOUNDS)
            try:
                for offset in _filters_in(data, at, end):
                    known = ClearFilters(_filters_in_clear(subject)) if known is None else known
                    if not known.explain(_filter_at(subject.of.file, offset, end)):
                        yield subject.of.finding(FILTER_STRAY, _WHAT)
            except CrowdedError:
                yield subject.of.finding(UNCHECKED_GAPS, _CROWDED)
                return


def gap_steps(subject: FooterSubject) -> Iterator[bytes]:
    """Yield the bytes to which nothing refers, in steps, up to ``_MOST_SEARCHED`` bytes."""
    left = _MOST_SEARCHED
    for start, end in _gaps(_owned(subject), subject.of.tail.offset):
        left -= end - start
        if left < 0:
            return
        yield from (data for _, data in _steps(subject.of.file, start, end))


def _legal_bounds(subject: FooterSubject) -> LegalBounds:
    """Return the bounds of columns in clear, and the offsets of all columns' column indexes."""
    clear = [chunk for chunk in subject.chunks if not chunk.is_sensitive]
    statistics = (chunk.meta_data.statistics for chunk in clear if chunk.meta_data is not None)
    return LegalBounds(
        indexes=frozenset(chunk.column_chunk.column_index_offset for chunk in subject.chunks),
        bounds=frozenset(
            bound
            for each in statistics
            if each is not None
            for bound in (each.min, each.max, each.min_value, each.max_value)
        ),
    )


def check_before_footer(subject: FileSubject) -> Findings:
    """Check that the last MiB before an unreadable footer contains no filter in clear.

    If the policy asks for filters of columns in clear, the filter may be one of these.
    """
    policy, end = subject.request.policy, subject.tail.offset
    may_be = any(policy.key_for(path.split(".")) is None for path in policy.bloom_columns())
    rule = UNCHECKED_FILTER if may_be else FILTER_STRAY
    what = "a Bloom filter in clear, which may be of a column in clear" if may_be else _WHAT
    try:
        for _ in _search(subject.file, max(len(MAGIC), end - _TAIL), end):
            yield subject.finding(rule, what)
    except CrowdedError:
        yield subject.finding(UNCHECKED_GAPS, _CROWDED)


def _filter_at(file: InputFile, offset: int, end: int) -> SplitBlockBloomFilter:
    head = file.read_at(offset, min(LONGEST_HEADER, end - offset))
    return plain_filter(file.read_at(offset, plain_filter_size(head)))


def _filters_in_clear(subject: FooterSubject) -> Iterator[SplitBlockBloomFilter]:
    """Yield the filters of columns in clear, up to the bytes that their own checks may read."""
    left = MOST_FILTERS
    for chunk in subject.chunks:
        if chunk.chunk is None or chunk.is_sensitive:
            continue
        stored = _stored(subject.of.file, chunk.chunk)
        if stored is not None:
            left -= stored.length
            yield stored.filter
        if left < 0:
            return


def _stored(file: InputFile, chunk: Chunk) -> StoredBloomFilter | None:
    try:
        return read_bloom_filter(file, chunk)
    except SecureBloomError:
        # The check of the filter itself reports the error.
        return None


def _search(file: InputFile, start: int, end: int) -> Iterator[int]:
    """Yield each offset from ``start`` to ``end`` at which a filter in clear begins."""
    for at, data in _steps(file, start, end):
        yield from _filters_in(data, at, end)


def _filters_in(data: bytes, offset: int, end: int) -> Iterator[int]:
    """Yield the offsets at which filters begin in a step that was read at ``offset``."""
    return (offset + at for at in plain_filters(data, end - offset) if at < _STEP)


def _steps(file: InputFile, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes between two offsets, step by step, each with its offset."""
    for offset in range(start, end, _STEP):
        # Read this far beyond the step, so that a header which begins in it is whole.
        yield offset, file.read_at(offset, min(_STEP + LONGEST_HEADER - 1, end - offset))


def _gaps(owned: Iterable[Region], end: int) -> Iterator[Region]:
    """Yield the regions between the first magic bytes and ``end`` that nothing owns."""
    position = len(MAGIC)
    for start, stop in sorted(owned):
        if start > position:
            yield position, min(start, end)
        # The larger of the two, because regions may lie in each other, and a lie must not make a
        # gap of owned bytes.
        position = max(position, stop)
        if position >= end:
            return
    yield position, end


def _owned(subject: FooterSubject) -> Iterator[Region]:
    unknown = set()
    for chunk in subject.chunks:
        if chunk.meta_data is None:
            unknown.add(chunk.row_group)
        else:
            yield from _parts(chunk.meta_data, _end_of_pages(chunk))
    for number in unknown:
        row_group = subject.footer.row_groups[number]
        start, size = row_group.file_offset, row_group.total_compressed_size
        # Both fields are optional, and 0 where a writer does not know.
        if start and size and start > 0 and size > 0:
            yield start, start + size


def _end_of_pages(subject: ChunkSubject) -> int | None:
    """Return where the last page ends, with ``check_values``, if the pages can be read."""
    chunk = subject.chunk
    if chunk is not None and subject.of.request.check_values:
        # Another check says what is wrong with the pages.
        with suppress(SecureBloomError):
            return end_of_pages(subject.of.file, chunk)
    return None


def _parts(meta_data: ColumnMetaData, end: int | None) -> Iterator[Region]:
    start = meta_data.data_page_offset
    # Some writers store 0 for "none".
    if 0 < (meta_data.dictionary_page_offset or 0) < start:
        start = meta_data.dictionary_page_offset or 0
    # Bytes after the last page belong to nothing, whatever size the metadata says.
    yield start, start + meta_data.total_compressed_size if end is None else end
    if meta_data.bloom_filter_offset is not None:
        offset = meta_data.bloom_filter_offset
        # Without a length only the header counts as owned, because a search would find its bytes.
        yield offset, offset + (meta_data.bloom_filter_length or HEADER_SIZE)
