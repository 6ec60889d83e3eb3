"""Skip rows whose pages' bounds rule the predicate out, and row groups that have no other rows."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.errors import located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import column_index_extent, offset_index_extent, page_spans
from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.predicates.binding import BoundCondition, BoundPredicate
from secure_bloom.predicates.tree import AllOf
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.file_pruner import FilePruner, RowGroupState
from secure_bloom.reading.pruning.page_bounds import (
    Rows,
    common,
    has_usable_bounds,
    matching_rows,
    merged,
)
from secure_bloom.reading.pruning.plan import Step
from secure_bloom.reading.table.coalesced_reads import read_extents
from secure_bloom.reports.text import counted

#: A row group, a column, and which of the two indexes.
_IndexKey = tuple[int, int, str]


def prune_by_page_index(pruner: FilePruner) -> None:
    """Keep the rows of pages that may match. A row group without such rows is skipped."""
    extents: dict[_IndexKey, tuple[int, int] | None] = {}
    indexed = []
    for group in pruner.alive():
        predicates = [it for it in pruner.predicates.values() if _has_index(pruner, group, it)]
        if predicates:
            indexed.append((group, predicates))
        for predicate in predicates:
            chunk = group.chunks[predicate.ordinal]
            key, size = (group.index, predicate.ordinal), pruner.footer.size
            extents[*key, "column"] = column_index_extent(chunk, size)
            extents[*key, "offset"] = offset_index_extent(chunk, size)
    wanted = {key: extent for key, extent in extents.items() if extent is not None}
    content = read_extents(pruner.file, wanted) if wanted else {}
    for group, predicates in indexed:
        _prune(pruner, group, predicates, content)


def _has_index(pruner: FilePruner, group: RowGroupState, predicate: ColumnPredicate) -> bool:
    chunk = group.chunks.get(predicate.ordinal)
    return (
        chunk is not None
        and has_usable_bounds(predicate)
        and has_ordered_bounds(
            pruner.footer.metadata.column_orders, predicate.ordinal, predicate.leaf
        )
        and _is_complete(chunk)
    )


def _is_complete(chunk: Chunk) -> bool:
    """Return whether the footer says where both indexes are."""
    column = chunk.column_chunk
    return None not in (
        column.column_index_offset,
        column.column_index_length,
        column.offset_index_offset,
        column.offset_index_length,
    )


def _prune(
    pruner: FilePruner,
    group: RowGroupState,
    predicates: Sequence[ColumnPredicate],
    content: dict[_IndexKey, memoryview],
) -> None:
    rows: dict[int, Rows] = {ordinal: [] for ordinal in group.ruled_out}
    for predicate in predicates:
        if predicate.condition.ordinal not in rows:
            with located(row_group=group.index, column=predicate.leaf.name):
                rows[predicate.condition.ordinal] = _matching_rows(group, predicate, content)
    found = _rows_of(pruner.context.request.predicate, rows, group.rows)
    if not found:
        group.skipped_by = Step.PAGE_INDEX
    elif found != [(0, group.rows)]:
        group.ranges = found
    for predicate in predicates:
        # The rows of this condition alone; `ranges` has those of the whole predicate.
        left = sum(end - start for start, end in rows[predicate.condition.ordinal])
        text = f"leaves {left:,} of {counted(group.rows, 'row')}"
        pruner.note(group, predicate, Step.PAGE_INDEX, text, rows=left)


def _matching_rows(
    group: RowGroupState, predicate: ColumnPredicate, content: dict[_IndexKey, memoryview]
) -> Rows:
    """Return the rows of pages that may match, or all rows if the indexes are not believed."""
    chunk, key = group.chunks[predicate.ordinal], (group.index, predicate.ordinal)
    offset, column = content.get((*key, "offset")), content.get((*key, "column"))
    spans = None if offset is None or column is None else page_spans(chunk, offset)
    if spans is None or column is None:
        return [(0, group.rows)]
    return matching_rows(predicate, chunk, column, spans)


def _rows_of(predicate: BoundPredicate | None, known: dict[int, Rows], count: int) -> Rows:
    """Return the rows for which the predicate may be true.

    ``known`` has the rows for which some of its conditions may be true.
    """
    if predicate is None:
        return [(0, count)]
    if isinstance(predicate, BoundCondition):
        return known.get(predicate.ordinal, [(0, count)])
    parts = [_rows_of(part, known, count) for part in predicate.parts]
    if isinstance(predicate, AllOf):
        rows = parts[0]
        for part in parts[1:]:
            rows = common(rows, part)
        return rows
    return merged(pair for part in parts for pair in part)
