"""Find statements of a file about a column chunk that contradict its schema, or each other.

Readers skip rows by counts, bounds and page indexes.  A file may have wrong ones, by a writer's
mistake or by intent, and nothing authenticates them in a plain file.  Statements that contradict
each other are not believed.  All others are believed: a bound that is merely too narrow looks like
any other.  parquet.thrift, Statistics, SizeStatistics, OffsetIndex and ColumnIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    BoundaryOrder,
    ColumnIndex,
    ColumnMetaData,
    OffsetIndex,
    PageLocation,
)
from secure_bloom.parquet.value_order import OrderKey

#: Sentences on what is wrong; none where nothing is.
Contradictions = Iterator[str]


def in_counts(leaf: Leaf, meta_data: ColumnMetaData, rows: int) -> Contradictions:
    """Yield a contradiction if a flat column does not have one value or null in every row.

    A column of lists must have at least one value or null in every row.
    """
    values = meta_data.num_values
    # An empty list still takes one value, a null, so a repeated column never has fewer than rows.
    if values < rows if leaf.is_repeated else values != rows:
        yield f"ColumnMetaData.num_values is {values}, the row group has {rows} rows"


def in_null_count(leaf: Leaf, meta_data: ColumnMetaData) -> Contradictions:
    """Yield contradictions between counts of nulls, and nulls in a required column."""
    statistics, values = meta_data.statistics, meta_data.num_values
    nulls = None if statistics is None else statistics.null_count
    if statistics is None or nulls is None:
        return
    if not 0 <= nulls <= values:
        yield f"Statistics.null_count is {nulls}, of {values} values"
    elif nulls > 0 and leaf.is_required:
        yield f"Statistics.null_count is {nulls} in a required column"
    elif nulls == values > 0 and _has_bounds(statistics):
        yield "Statistics: all values are null, and there are bounds"
    elif not leaf.is_repeated:
        sizes = meta_data.size_statistics
        histogram = None if sizes is None else sizes.definition_level_histogram
        # The last count is that of the highest level, which only values have that are not null.
        if histogram and (sum(histogram) != values or histogram[-1] != values - nulls):
            yield (
                f"Statistics.null_count is {nulls} of {values} values, "
                "the histogram of definition levels has other counts"
            )


def _has_bounds(statistics: Any) -> bool:
    bounds = statistics.min_value, statistics.max_value, statistics.min, statistics.max
    return any(bound is not None for bound in bounds)


def in_bounds(order: OrderKey | None, low: bytes | None, high: bytes | None) -> Contradictions:
    """Yield a contradiction if a bound is not of the column's type, or the bounds are reversed."""
    if order is None or low is None or high is None:
        return
    keys = order(low), order(high)
    if None in keys:
        yield "Statistics: a bound is not a value of the column's type"
    # NaN is neither above nor below a number, so a bound that is NaN contradicts nothing here.
    elif keys[0] > keys[1]:
        yield "Statistics: the lower bound is above the upper"


def in_offset_index(chunk: Chunk, index: OffsetIndex) -> Contradictions:
    """Yield a contradiction unless the pages fill the chunk after its dictionary.

    They must also have all rows of the chunk.
    """
    locations = index.page_locations
    if not locations:
        yield "OffsetIndex: there is no page"
        return
    rows = [location.first_row_index for location in locations]
    # Strictly, because two pages do not begin at one row.
    if rows[0] != 0 or any(a >= b for a, b in pairwise([*rows, chunk.num_rows])):
        yield (
            "OffsetIndex: the first rows of the pages do not ascend from 0 "
            f"to the row group's {chunk.num_rows} rows"
        )
    start, length = chunk_extent(chunk)
    # Each page starts where the one before ends, and the last one ends with the chunk.  So no byte
    # of the chunk is left out, and none is read as two pages.
    ends = [chunk.meta_data.data_page_offset, *map(_end, locations)]
    starts = [*(location.offset for location in locations), start + length]
    if starts != ends or min(location.compressed_page_size for location in locations) <= 0:
        yield "OffsetIndex: the pages are not, one after the other, those of the chunk"


def _end(location: PageLocation) -> int:
    return location.offset + location.compressed_page_size


def in_column_index(
    chunk: Chunk, index: ColumnIndex, rows: Sequence[int], order: OrderKey | None
) -> Contradictions:
    """Yield contradictions in a column index whose pages have ``rows`` rows, page by page.

    ``order`` is the order of the values, or None if it is not known.  For repeated columns only the
    lengths of the lists are checked.
    """
    lengths = {len(index.null_pages), len(index.min_values), len(index.max_values)}
    lengths |= {len(found) for found in (index.null_counts, index.nan_counts) if found is not None}
    if lengths != {len(rows)}:
        yield f"ColumnIndex: its lists are not all of {len(rows)} pages, which OffsetIndex has"
        return
    if chunk.leaf.is_repeated:
        return
    yield from _in_page_nulls(chunk, index, rows)
    if order is not None:
        yield from _in_page_bounds(chunk.meta_data, index, order)


def _in_page_nulls(chunk: Chunk, index: ColumnIndex, rows: Sequence[int]) -> Contradictions:
    nulls, required = index.null_counts, chunk.leaf.is_required
    if required and any(index.null_pages):
        yield "ColumnIndex: pages of a required column are all null"
    if nulls is None:
        return
    most = [0] * len(rows) if required else rows
    if any(not 0 <= count <= limit for count, limit in zip(nulls, most, strict=True)):
        yield "ColumnIndex: null_counts do not fit the rows of their pages"
    elif any(
        (count == page) is not is_null
        for count, page, is_null in zip(nulls, rows, index.null_pages, strict=True)
    ):
        yield "ColumnIndex: null_pages and null_counts do not agree"
    statistics = chunk.meta_data.statistics
    known = None if statistics is None else statistics.null_count
    if known is not None and known != sum(nulls):
        yield f"ColumnIndex: null_counts are {sum(nulls)}, Statistics.null_count is {known}"
    yield from _in_histograms(index, rows, nulls)


def _in_histograms(index: ColumnIndex, rows: Sequence[int], nulls: Sequence[int]) -> Contradictions:
    """Yield a contradiction if a page's level counts do not add up to its rows, or its values."""
    levels = index.definition_level_histograms
    if not levels:
        return
    # The histograms of all pages are in one list (parquet.thrift, ColumnIndex).
    size = len(levels) // len(rows)
    pages = [levels[start : start + size] for start in range(0, len(rows) * size, size)]
    if len(levels) != size * len(rows) or any(
        sum(counts) != page or counts[-1] != page - count
        for counts, page, count in zip(pages, rows, nulls, strict=True)
    ):
        yield "ColumnIndex: the histograms of definition levels are not those of the pages"


def _in_page_bounds(
    meta_data: ColumnMetaData, index: ColumnIndex, order: OrderKey
) -> Contradictions:
    pages = zip(index.min_values, index.max_values, index.null_pages, strict=True)
    # A page of nulls has entries in these lists only to keep them in step (parquet.thrift,
    # ColumnIndex).
    bounds = [(order(low), order(high)) for low, high, is_null in pages if not is_null]
    # Bounds of a page without a number are NaN, which the bounds of the chunk leave out
    # (parquet.thrift, IEEE_754_TOTAL_ORDER).
    bounds = [pair for pair in bounds if not all(key != key for key in pair)]
    known = [pair for pair in bounds if None not in pair]
    if len(known) < len(bounds):
        yield "ColumnIndex: a bound is not a value of the column's type"
    if any(low > high for low, high in known):
        yield "ColumnIndex: the lower bound of a page is above the upper"
    lows, highs = [low for low, _ in known], [high for _, high in known]
    is_ordered = _ORDERED.get(index.boundary_order)
    if is_ordered is None or not (is_ordered(lows) and is_ordered(highs)):
        yield "ColumnIndex: the bounds of the pages are not in the order that boundary_order says"
    if known and len(known) == len(bounds):
        yield from _in_both_bounds(meta_data, order, min(lows), max(highs))


def _in_both_bounds(
    meta_data: ColumnMetaData, order: OrderKey, low: Any, high: Any
) -> Contradictions:
    """Yield a contradiction if the bounds of all pages together differ from the chunk's.

    The chunk's bounds may be shortened.
    """
    statistics = meta_data.statistics
    if statistics is None or statistics.min_value is None or statistics.max_value is None:
        return
    least, greatest = order(statistics.min_value), order(statistics.max_value)
    if None in (least, greatest) or least > greatest:
        return
    # Writers cut texts and bytes short in an index, numbers never.
    if not isinstance(low, bytes):
        agree = low == least and high == greatest
    else:
        agree = _may_be_cut(low, least, 0) and _may_be_cut(high, greatest, _RAISED)
    if not agree:
        yield "ColumnIndex: the bounds of the pages are not those of Statistics"


#: Bytes of the last character of an upper bound, which is raised where the bound is cut.
_RAISED = 4


def _may_be_cut(one: bytes, other: bytes, raised: int) -> bool:
    """Return whether two bounds may come from one text that was shortened in one of the bounds."""
    if len(one) == len(other):
        return one == other
    length = max(0, min(len(one), len(other)) - raised)
    return one[:length] == other[:length]


_ORDERED: dict[int, Callable[[Sequence[Any]], bool]] = {
    BoundaryOrder.UNORDERED: lambda _: True,
    BoundaryOrder.ASCENDING: lambda keys: all(not b < a for a, b in pairwise(keys)),
    BoundaryOrder.DESCENDING: lambda keys: all(not a < b for a, b in pairwise(keys)),
}
