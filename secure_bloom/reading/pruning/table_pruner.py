"""Ask all files of an open table at once which of their row groups may match.

Bounds and filters in memory answer lookups.  Row groups that they leave go through the steps, file
by file, and so do the files that are not in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from secure_bloom.kernels import extension
from secure_bloom.parquet.footer.columns import FileColumns
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.batch.batch_pruner import left_by_bounds
from secure_bloom.reading.pruning.batch.lookup_fields import Numbers
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.filter_reads import ANSWER_NONE, ANSWER_SOME
from secure_bloom.reading.pruning.kept_columns import KeptColumn, KeptColumns, Mask, Segment

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

    Columns of the condition that are not in memory are loaded first, and of their filters those
    that bounds leave.
    """
    found = TableSurvivors()
    # To explain a read, every row group needs notes of its own, which only the steps write.
    if not context.explain:
        for columns in kept.schemas:
            questions = list(_questions(kept, context, columns))
            ruled_out = _RuledOut(questions)
            _joined(found, [(it, it.left(kept, context, ruled_out)) for it in questions])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """A condition that alone can rule a row group out, on a column in memory.

    ``runs`` are the values that the bounds of each chunk leave, by segment.
    """

    predicate: ColumnPredicate
    column: KeptColumn
    runs: Mapping[bool, Numbers]

    def left(
        self, kept: KeptColumns, context: PruningContext, ruled_out: _RuledOut
    ) -> dict[_Place, bool]:
        """Return the chunks that may match, and whether their filter was checked."""
        found = dict[_Place, bool]()
        hashes = context.hashes(self.predicate, self.predicate.values or ()).array
        for key, runs in self.runs.items():
            starts, ends = runs.T
            wanted = (starts >= 0) & (starts < ends) & ruled_out.leaves(self.column.segments[key])
            segment = kept.with_filters(self.column, key, wanted)
            answers = segment.ask(runs, hashes)
            ruled_out.add(segment, answers == ANSWER_NONE)
            (left,) = answers.nonzero()
            if len(left):
                by_filter = (answers[left] == ANSWER_SOME).tolist()
                places = map(_place, segment.places[left].tolist())
                found.update(zip(places, by_filter, strict=True))
        return found


class _RuledOut:
    """Row groups that some column rules out: for these, filters of other columns are not loaded."""

    def __init__(self, questions: Sequence[_Question]) -> None:
        self._codes: list[Numbers] = []
        #: One question alone loads nothing for what it rules out itself.
        self._is_used = len(questions) > 1
        for question in questions:
            for key, runs in question.runs.items():
                self.add(question.column.segments[key], runs[:, 0] == runs[:, 1])

    def add(self, segment: Segment, chunks: Mask) -> None:
        """Note that these chunks cannot match."""
        if self._is_used:
            self._codes.append(_codes(segment)[chunks])

    def leaves(self, segment: Segment) -> Mask | bool:
        """Return which chunks of a segment are not ruled out."""
        if not self._is_used:
            return True
        return ~np.isin(_codes(segment), np.concatenate(self._codes))


def _codes(segment: Segment) -> Numbers:
    """Return a number for each file and row group."""
    codes: Numbers = segment.places[:, 0] << 32 | segment.places[:, 1]
    return codes


def _questions(
    kept: KeptColumns, context: PruningContext, columns: FileColumns
) -> Iterator[_Question]:
    """Yield the conditions that each can rule a row group out alone."""
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
            runs = {key: _runs(it, predicate, context) for key, it in column.segments.items()}
            yield _Question(predicate, column, runs)


def _place(pair: list[int]) -> _Place:
    return pair[0], pair[1]


def _runs(segment: Segment, predicate: ColumnPredicate, context: PruningContext) -> Numbers:
    """Return the run of values that bounds leave of each chunk.

    These are all values if bytes have no order, or without the extension.
    """
    probe = None if extension.native is None else context.probe_values(predicate)
    if probe is None:
        count = len(context.hashes(predicate, predicate.values or ()).array)
        return np.tile(np.array([0, count], np.int64), (len(segment.rows), 1))
    return left_by_bounds(segment, segment.rows, predicate, probe, has_order=segment.has_order)


def _joined(
    found: TableSurvivors, answers: Sequence[tuple[_Question, Mapping[_Place, bool]]]
) -> None:
    """Add the files of one schema: what all columns leave that know a file."""
    for question, _ in answers:
        found.asked |= question.column.known
    # In order: rows come in the order of their row groups.
    for place in sorted({place for _, left in answers for place in left}):
        knowing = [(it, left) for it, left in answers if place[0] in it.column.known]
        if all(place in left for _, left in knowing):
            conditions = (it.predicate.condition.ordinal for it, left in knowing if left[place])
            found.left.setdefault(place[0], {})[place[1]] = frozenset(conditions)
