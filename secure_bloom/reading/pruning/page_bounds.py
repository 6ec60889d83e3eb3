"""Find, by the page index of a column chunk, the rows whose pages may match a column predicate.

Rows are half-open ranges in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from secure_bloom.errors import FormatError
from secure_bloom.parquet.chunk_contradictions import in_column_index
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import PageSpan, decode_column_index
from secure_bloom.parquet.structures.metadata import ColumnIndex
from secure_bloom.predicates.tree import Operator
from secure_bloom.reading.pruning.bounds import Bounds, keys_of, remaining
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate

Rows = list[tuple[int, int]]


def matching_rows(
    predicate: ColumnPredicate, chunk: Chunk, content: bytes | memoryview, spans: Sequence[PageSpan]
) -> Rows:
    """Return the rows of the pages that may match, by the column index in ``content``.

    Return all rows if the index contradicts the chunk.  Raises IntegrityError for a module that
    does not authenticate.
    """
    rows = [span.end - span.start for span in spans]
    try:
        index = decode_column_index(chunk, content)
        if any(in_column_index(chunk, index, rows, predicate.order)):
            return [(0, chunk.num_rows)]
    except FormatError:
        return [(0, chunk.num_rows)]
    bounds = _page_bounds(predicate, index, rows)
    return merged(
        (span.start, span.end)
        for span, page in zip(spans, bounds, strict=True)
        if remaining(predicate, page) is not None
    )


def _page_bounds(
    predicate: ColumnPredicate, index: ColumnIndex, rows: Sequence[int]
) -> list[Bounds]:
    unknown: list[int | None] = [None] * len(rows)
    nulls, nans = index.null_counts or unknown, index.nan_counts or unknown
    lists = (index.null_pages, index.min_values, index.max_values, nulls, nans)
    return [
        Bounds(nulls=count, values=count)
        if is_null
        else _bounds(predicate, low, high, null_count, nan_count, count)
        for is_null, low, high, null_count, nan_count, count in zip(*lists, rows, strict=True)
    ]


def _bounds(
    predicate: ColumnPredicate,
    low: bytes,
    high: bytes,
    nulls: int | None,
    nans: int | None,
    rows: int,
) -> Bounds:
    keys = keys_of(predicate.order, low, high)
    return Bounds(low=keys[0], high=keys[1], nulls=nulls, nans=nans, values=rows)


def has_usable_bounds(predicate: ColumnPredicate) -> bool:
    """Return whether the bounds of a page can decide anything about the predicate."""
    if predicate.leaf.is_repeated:
        return False
    tests_null = predicate.condition.operator in (Operator.IS_NULL, Operator.IS_NOT_NULL)
    return tests_null or bool(predicate.keys) or predicate.values == ()


def merged(ranges: Iterable[tuple[int, int]]) -> Rows:
    """Return the union of ranges."""
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
    """Return the intersection of two unions of ranges."""
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
