"""The page index of a column chunk -> the rows whose pages may match a column predicate.

    ColumnIndex:  for every data page its bounds          module type 6 of an encrypted column
    OffsetIndex:  for every data page its span and rows   module type 7

Parquet, "Page Index".  Rows are half-open ranges in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.structures.metadata import ColumnIndex, OffsetIndex, PageLocation
from secure_bloom.parquet.structures.records import decode_record
from secure_bloom.parquet.structures.views import View
from secure_bloom.predicates.tree import Operator
from secure_bloom.reading.pruning.bounds import Bounds, keys_of, remaining
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate

Rows = list[tuple[int, int]]
V = TypeVar("V", bound=View)

#: Far more than any index has: the length comes from the footer and may be hostile.
_MAX_INDEX = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSpan:
    """One data page: its bytes in the file, header included, and its rows in the row group."""

    offset: int
    length: int
    start: int
    end: int


def column_index_extent(chunk: Chunk) -> tuple[int, int] | None:
    """Where the chunk's column index stands; None where it has none."""
    column = chunk.column_chunk
    return _extent("column_index", column.column_index_offset, column.column_index_length)


def offset_index_extent(chunk: Chunk) -> tuple[int, int] | None:
    """Where the chunk's offset index stands; None where it has none."""
    column = chunk.column_chunk
    return _extent("offset_index", column.offset_index_offset, column.offset_index_length)


def _extent(name: str, offset: int | None, length: int | None) -> tuple[int, int] | None:
    if offset is None or length is None:
        return None
    if not 0 < length <= _MAX_INDEX:
        raise FormatError(f"ColumnChunk.{name}_length is {length}")
    return offset, length


def decode_offset_index(chunk: Chunk, content: bytes | memoryview) -> list[PageSpan]:
    """The spans of the chunk's data pages, in order; together they hold every row once."""
    index = _decode(OffsetIndex, ModuleType.OFFSET_INDEX, chunk, content)
    locations = index.page_locations
    starts = [location.first_row_index for location in locations]
    ends = [*starts[1:], chunk.num_rows]
    if not starts or starts[0] != 0 or any(a > b for a, b in zip(starts, ends, strict=True)):
        raise FormatError("OffsetIndex: the first rows of the pages do not ascend from 0")
    return [
        _place(location, start, end)
        for location, start, end in zip(locations, starts, ends, strict=True)
    ]


def _place(location: PageLocation, start: int, end: int) -> PageSpan:
    if location.offset < 0 or location.compressed_page_size <= 0:
        raise FormatError("OffsetIndex: a page has no span")
    return PageSpan(
        offset=location.offset, length=location.compressed_page_size, start=start, end=end
    )


def _decode(view: type[V], module_type: ModuleType, chunk: Chunk, content: bytes | memoryview) -> V:
    plain = content if chunk.cipher is None else chunk.cipher.decrypt(module_type, content)
    return decode_record(view, plain)


def matching_rows(
    predicate: ColumnPredicate, chunk: Chunk, content: bytes | memoryview, spans: Sequence[PageSpan]
) -> Rows:
    """The rows of the pages that may match, by the column index in ``content``."""
    index = _decode(ColumnIndex, ModuleType.COLUMN_INDEX, chunk, content)
    bounds = _page_bounds(predicate, index, spans)
    return merged(
        (span.start, span.end)
        for span, page in zip(spans, bounds, strict=True)
        if remaining(predicate, page) is not None
    )


def _page_bounds(
    predicate: ColumnPredicate, index: ColumnIndex, spans: Sequence[PageSpan]
) -> list[Bounds]:
    count = len(spans)
    unknown: list[int | None] = [None] * count
    nulls, nans = index.null_counts or unknown, index.nan_counts or unknown
    lists = (index.null_pages, index.min_values, index.max_values, nulls, nans)
    if any(len(values) != count for values in lists):
        raise FormatError(f"ColumnIndex and OffsetIndex do not agree: {count} pages in the latter")
    return [
        Bounds(nulls=span.end - span.start, values=span.end - span.start)
        if is_null
        else _bounds(predicate, low, high, null_count, nan_count, span)
        for is_null, low, high, null_count, nan_count, span in zip(*lists, spans, strict=True)
    ]


def _bounds(
    predicate: ColumnPredicate,
    low: bytes,
    high: bytes,
    nulls: int | None,
    nans: int | None,
    span: PageSpan,
) -> Bounds:
    keys = keys_of(predicate.order, low, high)
    return Bounds(low=keys[0], high=keys[1], nulls=nulls, nans=nans, values=span.end - span.start)


def has_usable_bounds(predicate: ColumnPredicate) -> bool:
    """Whether the bounds of a page can say anything about the predicate."""
    if predicate.leaf.is_repeated:
        return False
    tests_null = predicate.condition.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL)
    return tests_null or (predicate.order is not None and predicate.values is not None)


def merged(ranges: Iterable[tuple[int, int]]) -> Rows:
    """The union of ranges."""
    found: Rows = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def common(left: Rows, right: Rows) -> Rows:
    """The intersection of two unions of ranges."""
    found: Rows = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            found.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found
