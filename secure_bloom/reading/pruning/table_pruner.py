"""Ask all files of an open table at once which of their row groups may match.

Bounds and filters in memory answer lookups.  Row groups that they leave go through the steps, file
by file, and so do the files that are not in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from secure_bloom.kernels import extension
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.batch.batch_pruner import left_by_bounds
from secure_bloom.reading.pruning.batch.chunk_fields import Numbers
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.kept_columns import KeptColumn, KeptColumns, Segment
from secure_bloom.reading.table.file_columns import FileColumns

#: A file and a row group.
_Place = tuple[int, int]


@dataclass(slots=True, kw_only=True, eq=False)
class TableSurvivors:
    """The row groups that may match, as bounds and filters in memory say.

    ``asked`` are the files whose bounds and filters are in memory.  ``left`` maps each of them to
    the row groups that may match, and each row group to the conditions whose filter was checked.
    """

    asked: set[int] = field(default_factory=set)
    left: dict[int, dict[int, frozenset[int]]] = field(default_factory=dict)

    def ordinals(self, count: int) -> list[int]:
        """Return which of ``count`` files may have rows, or were not asked."""
        if len(self.asked) == count:
            return sorted(self.left)
        return sorted(self.left.keys() | (set(range(count)) - self.asked))


def ask_table(kept: KeptColumns, context: PruningContext) -> TableSurvivors:
    """Return the row groups that the bounds and filters in memory do not rule out.

    Columns of the condition that are not in memory are loaded first.
    """
    found = TableSurvivors()
    # To explain a read, every row group needs notes of its own, which only the steps write.
    if not context.explain and extension.native is not None:
        for columns in kept.schemas:
            _joined(found, list(_answers(kept, context, columns)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """The answer of one column: the files it knows, and their chunks that may match.

    ``left`` says of each chunk whether its filter was checked.
    """

    condition: int
    known: frozenset[int]
    left: Mapping[_Place, bool]


def _answers(kept: KeptColumns, context: PruningContext, columns: FileColumns) -> Iterator[_Answer]:
    """Yield the answers of the columns that each can rule a row group out alone."""
    nothing_ruled_out = context.ruled_out()
    for condition in context.conditions:
        predicate = context.column_predicate(condition, columns)
        if (
            predicate is not None
            and predicate.values is not None
            and condition.operator in LOOKUPS
            and condition.path[0] not in context.request.partitions
            and nothing_ruled_out.would_decide([condition.ordinal])
        ):
            column = kept.column(columns, predicate.ordinal)
            left = dict(_left(column, predicate, context))
            yield _Answer(condition.ordinal, column.known, left)


def _left(
    column: KeptColumn, predicate: ColumnPredicate, context: PruningContext
) -> Iterator[tuple[_Place, bool]]:
    """Yield the chunks of a column that may match, and whether their filter was checked."""
    hashes = context.hashes(predicate, predicate.values or ()).array
    for segment in column.segments:
        asked = segment.ask(_runs(segment, predicate, context, len(hashes)), hashes)
        left = np.flatnonzero(asked.may_match)
        places, by_filter = segment.places[left].tolist(), asked.by_filter[left].tolist()
        yield from zip(map(_place, places), by_filter, strict=True)


def _place(pair: list[int]) -> _Place:
    return pair[0], pair[1]


def _runs(
    segment: Segment, predicate: ColumnPredicate, context: PruningContext, count: int
) -> Numbers:
    """Return the run of values that bounds leave of each chunk; all if bytes have no order."""
    probe = context.probe_values(predicate)
    if probe is None:
        return np.tile(np.array([0, count], np.int64), (len(segment.rows), 1))
    return left_by_bounds(segment, segment.rows, predicate, probe, has_order=segment.has_order)


def _joined(found: TableSurvivors, answers: Sequence[_Answer]) -> None:
    """Add the files of one schema: what all columns leave that know a file."""
    for answer in answers:
        found.asked |= answer.known
    # In order: rows come in the order of their row groups.
    for place in sorted({place for answer in answers for place in answer.left}):
        knowing = [answer for answer in answers if place[0] in answer.known]
        if all(place in answer.left for answer in knowing):
            checked = frozenset(a.condition for a in knowing if a.left[place])
            found.left.setdefault(place[0], {})[place[1]] = checked
