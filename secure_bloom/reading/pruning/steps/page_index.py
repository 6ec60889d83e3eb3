"""Row groups, and rows of them, whose pages' bounds exclude what is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.errors import located
from secure_bloom.parquet.footer import Chunk
from secure_bloom.predicates.binding import BoundAll, BoundCondition, BoundPredicate
from secure_bloom.reading.pruning.column_predicates import Question
from secure_bloom.reading.pruning.file_pruner import FileJudge, Group
from secure_bloom.reading.pruning.page_bounds import (
    Rows,
    can_judge,
    column_index_extent,
    common,
    decode_offset_index,
    matching_rows,
    merged,
    offset_index_extent,
)
from secure_bloom.reading.pruning.plan import Step
from secure_bloom.reading.table.coalesced_reads import read_extents
from secure_bloom.reading.table.schemas import has_type_order

#: A row group, a column, and which of its two indexes.
_Place = tuple[int, int, str]


def judge_page_index(file: FileJudge) -> None:
    """Leave the rows of pages that may match; a row group without such rows is ruled out."""
    extents: dict[_Place, tuple[int, int] | None] = {}
    indexed = []
    for group in file.alive():
        asked = [one for one in file.questions.values() if _has_index(file, group, one)]
        if asked:
            indexed.append((group, asked))
        for one in asked:
            chunk = group.chunks[one.ordinal]
            with located(row_group=group.index, column=one.leaf.name):
                extents[group.index, one.ordinal, "column"] = column_index_extent(chunk)
                extents[group.index, one.ordinal, "offset"] = offset_index_extent(chunk)
    content = read_extents(file.file, {k: v for k, v in extents.items() if v is not None})
    for group, asked in indexed:
        _judge(file, group, asked, content)


def _has_index(file: FileJudge, group: Group, asked: Question) -> bool:
    chunk = group.chunks.get(asked.ordinal)
    return (
        chunk is not None
        and can_judge(asked)
        and has_type_order(file.footer.metadata.column_orders, asked.ordinal)
        and _is_complete(chunk)
    )


def _is_complete(chunk: Chunk) -> bool:
    """Whether the footer tells where both indexes stand."""
    column = chunk.column_chunk
    return None not in (
        column.column_index_offset,
        column.column_index_length,
        column.offset_index_offset,
        column.offset_index_length,
    )


def _judge(
    file: FileJudge,
    group: Group,
    asked: Sequence[Question],
    content: dict[_Place, memoryview],
) -> None:
    rows: dict[int, Rows] = {ordinal: [] for ordinal in group.ruled_out}
    for one in asked:
        chunk = group.chunks[one.ordinal]
        with located(row_group=group.index, column=one.leaf.name):
            places = decode_offset_index(chunk, content[group.index, one.ordinal, "offset"])
            index = content[group.index, one.ordinal, "column"]
            if one.condition.ordinal not in rows:
                rows[one.condition.ordinal] = matching_rows(one, chunk, index, places)
    found = _rows_of(file.inquiry.request.predicate, rows, group.rows)
    if not found:
        group.skipped_by = Step.PAGE_INDEX
    elif found != [(0, group.rows)]:
        group.ranges = found
    for one in asked:
        # Of this condition alone: what is left of all is the row group's `ranges`.
        left = sum(end - start for start, end in rows[one.condition.ordinal])
        file.note(group, one, Step.PAGE_INDEX, f"leaves {left} of {group.rows} rows", rows=left)


def _rows_of(predicate: BoundPredicate | None, known: dict[int, Rows], count: int) -> Rows:
    """The rows for which the predicate can be true, where conditions are only for some."""
    if predicate is None:
        return [(0, count)]
    if isinstance(predicate, BoundCondition):
        return known.get(predicate.ordinal, [(0, count)])
    parts = [_rows_of(part, known, count) for part in predicate.parts]
    if isinstance(predicate, BoundAll):
        rows = parts[0]
        for part in parts[1:]:
            rows = common(rows, part)
        return rows
    return merged(pair for part in parts for pair in part)
