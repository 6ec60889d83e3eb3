"""Ask all chunks of a column at once whether they may have a value: bounds first, then filters.

    batch = batch_of_file(pruner)        compares with the bounds in one file's footer
    ask_filters_of_file(pruner, batch)   reads the file's filters: the row groups that may match

    ask_table(kept, context)             the same for all files of an open table, from memory

This is the faster of two ways to the same answer, for lookups that can each rule a row group out
alone.  The C extension checks all chunks in one call, without a Python object for each. It decides
only the usual cases.  All other row groups, and those that may match, go through the other way,
step by step: :mod:`.steps`.  ``docs/design/how-pruning-works.md`` compares them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.kernels import extension
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.bounds import has_signed_order
from secure_bloom.reading.pruning.column_chunks import (
    ColumnChunks,
    Numbers,
    places_of,
    read_column_chunks,
)
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.file_pruner import FilePruner
from secure_bloom.reading.pruning.filter_reads import (
    ANSWER_NONE,
    ANSWER_SOME,
    ANSWER_UNUSUAL,
    ask_together,
)
from secure_bloom.reading.pruning.kept_columns import KeptColumn, KeptColumns

Mask = NDArray[np.bool_]
Answers = NDArray[np.uint8]
#: Row groups that may match, each with the conditions whose filter was checked.
Left = Mapping[int, frozenset[int]]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnQuestion:
    """A lookup on chunks of one column, and for each chunk the run of values that its bounds leave.

    A run is (start, end). An empty run rules the chunk out. A start below 0 means that the steps
    must check the chunk.
    """

    predicate: ColumnPredicate
    chunks: ColumnChunks
    runs: Numbers

    @classmethod
    def of(
        cls, predicate: ColumnPredicate, chunks: ColumnChunks, context: PruningContext
    ) -> ColumnQuestion:
        """Return the question about these chunks, after comparing with their bounds."""
        return cls(predicate, chunks, _left_by_bounds(predicate, chunks, context))

    @property
    def may_match(self) -> Mask:
        """A mask of the chunks that bounds leave."""
        return np.not_equal(self.runs[:, 0], self.runs[:, 1])


class Batch:
    """Questions that can each rule a row group out alone, and what they ruled out so far."""

    def __init__(self, context: PruningContext, questions: Sequence[ColumnQuestion]) -> None:
        self.questions = questions
        self._context = context
        #: For each question a mask of the chunks whose row groups no question ruled out.
        self._open = [question.may_match for question in questions]
        codes = [question.chunks.codes for question in questions]
        #: Whether all questions are about the same row groups: then all have the same mask.
        self._is_aligned = all(np.array_equal(codes[0], it) for it in codes[1:])
        if self._is_aligned and questions:
            self._open = [functools.reduce(np.logical_and, self._open)] * len(questions)
        else:
            for number, mask in enumerate(tuple(self._open)):
                self._leave(number, mask)

    def _leave(self, number: int, chunks: Mask) -> None:
        """Record that only these chunks of a question may match.

        A row group that is ruled out by one question is ruled out for all others too.
        """
        self._open[number] &= chunks
        for other, mask in enumerate(() if self._is_aligned else self._open):
            if other != number:
                codes = self.questions[number].chunks.codes[~chunks]
                mask &= ~np.isin(self.questions[other].chunks.codes, codes)

    def __bool__(self) -> bool:
        """Return whether some row group may match."""
        return any(bool(mask.any()) for mask in self._open)

    def unasked(self, number: int) -> Mask:
        """Return a mask of the chunks of a question whose filters should be asked."""
        return self._open[number] & np.greater_equal(self.questions[number].runs[:, 0], 0)

    def hashes(self, question: ColumnQuestion) -> NDArray[np.uint64]:
        """Return the hashes of the values of a question."""
        predicate = question.predicate
        return self._context.hashes(predicate, predicate.values or ()).array

    def left(self, filters: Iterable[Answers]) -> Left:
        """Return the codes of the row groups that may match, ascending.

        ``filters`` yields the answers to one question after the other: an ``ANSWER`` number for
        each chunk. Just before, it calls :meth:`unasked`, which names the chunks whose answers
        count. ``ANSWER_UNUSUAL`` is the answer for chunks that the steps must check.
        """
        answered = []
        for number, answers in enumerate(filters):
            self._leave(number, answers != ANSWER_NONE)
            answered.append(answers)
        left = dict[int, frozenset[int]]()
        for question, mask, answers in zip(self.questions, self._open, answered, strict=True):
            (indices,) = mask.nonzero()
            if len(indices):
                condition = frozenset([question.predicate.condition.ordinal])
                by_filter = (answers[indices] == ANSWER_SOME).tolist()
                for code, is_some in zip(
                    question.chunks.codes[indices].tolist(), by_filter, strict=True
                ):
                    known = left.get(code, frozenset())
                    left[code] = known | condition if is_some else known
        return {code: left[code] for code in sorted(left)}


def _left_by_bounds(
    predicate: ColumnPredicate, chunks: ColumnChunks, context: PruningContext
) -> Numbers:
    """Return for each chunk the run of values that its bounds do not exclude.

    If byte order is not the order of the type, or without the extension, each run has all values.
    """
    probe = None if extension.native is None else context.probe_values(predicate)
    if probe is None:
        count = len(context.hashes(predicate, predicate.values or ()).array)
        return np.tile(np.array([0, count], np.int64), (len(chunks.rows), 1))
    runs, leaf = np.empty((len(chunks.rows), 2), np.int64), predicate.leaf
    bits = (
        probe.order.is_little,
        probe.order.is_signed,
        chunks.has_order,
        has_signed_order(leaf),
        not leaf.is_required,
    )
    flags = sum(1 << place for place, is_set in enumerate(bits) if is_set)
    extension.native.leave(
        chunks.plain,
        chunks.fields,
        chunks.rows,
        probe.path,
        probe.values,
        probe.offsets,
        probe.order.width,
        flags,
        runs,
    )
    return runs


def _deciding(
    context: PruningContext,
    predicates: Iterable[ColumnPredicate],
    ruled_out: frozenset[int] = frozenset(),
) -> Iterator[ColumnPredicate]:
    """Yield the lookups that can each rule a row group out alone."""
    deciding = context.deciding(ruled_out)
    for it in predicates:
        condition = it.condition
        if (
            condition.ordinal in deciding
            and condition.operator in LOOKUPS
            and it.values is not None
        ):
            yield it


def batch_of_file(pruner: FilePruner) -> Batch | None:
    """Return the batch of a file after comparing with bounds, or None to leave it to the steps.

    Three cases are left to the steps. If the read is explained, each row group gets its own notes.
    A condition may be no lookup, or decide nothing alone. The bounds of a column may not be
    comparable here: the steps then read fewer filters.
    """
    context = pruner.context
    predicates = list(_deciding(context, pruner.predicates.values(), pruner.ruled_out))
    if (
        pruner.explain
        or extension.native is None
        or not 0 < len(predicates) == len(pruner.predicates)
        or not context.can_match(pruner.ruled_out)
        or any(context.probe_values(predicate) is None for predicate in predicates)
    ):
        return None
    row_groups = [index for index, count in enumerate(pruner.footer.rows) if count > 0]
    questions = []
    for predicate in predicates if row_groups else ():
        try:
            chunks = read_column_chunks(pruner.footer, predicate.ordinal, row_groups)
        except KeyUnavailableError:
            # The steps know whether that is an error or a condition to leave out.
            continue
        if chunks is not None:
            questions.append(ColumnQuestion.of(predicate, chunks, context))
    return Batch(context, questions) if questions or not row_groups else None


def ask_filters_of_file(pruner: FilePruner, batch: Batch) -> Left:
    """Return the row groups that may match by the filters, read in few requests."""
    return batch.left(_answers_of_file(pruner, batch))


def _answers_of_file(pruner: FilePruner, batch: Batch) -> Iterator[Answers]:
    every = [(it, batch.unasked(n).nonzero()[0]) for n, it in enumerate(batch.questions)]
    found = None
    if any(len(chunks) for _, chunks in every):
        places = [question.chunks.filter_places(0, chunks) for question, chunks in every]
        asked = [(batch.hashes(question), question.runs[chunks]) for question, chunks in every]
        found = ask_together(pruner.file, places, asked)
    for number, (question, chunks) in enumerate(every):
        # What is not known is left to the steps.
        answers = np.empty(len(question.runs), np.uint8)
        answers.fill(ANSWER_UNUSUAL)
        if found is not None:
            answers[chunks] = found[number]
        yield answers


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

    Bounds that are not in memory are loaded first. Then missing filters are loaded, but only of row
    groups that no bounds and no other column rule out.
    """
    found = TableSurvivors()
    # To explain a read, every row group needs notes of its own, which only the steps write.
    if context.explain:
        return found
    partitions = context.request.partitions
    for columns in kept.schemas:
        every = (
            context.column_predicate(it, columns)
            for it in context.conditions
            if it.path[0] not in partitions
        )
        questions, of_columns = list[ColumnQuestion](), list[KeptColumn]()
        for predicate in _deciding(context, filter(None, every)):
            column = kept.column(columns, predicate.ordinal)
            found.asked |= column.known
            for segment in tuple(column.segments.values()):
                questions.append(ColumnQuestion.of(predicate, segment, context))
                of_columns.append(column)
        batch = Batch(context, questions)
        left = batch.left(_answers_in_memory(kept, batch, of_columns))
        files, row_groups = places_of(np.array([*left], np.int64))
        for file, row_group, checked in zip(
            files.tolist(), row_groups.tolist(), left.values(), strict=True
        ):
            found.left.setdefault(file, {})[row_group] = checked
    return found


def _answers_in_memory(
    kept: KeptColumns, batch: Batch, columns: Sequence[KeptColumn]
) -> Iterator[Answers]:
    for number, question in enumerate(batch.questions):
        wanted, has_order = batch.unasked(number), question.chunks.has_order
        segment = kept.with_filters(columns[number], has_order, wanted)
        hashes = batch.hashes(question)
        answers = segment.ask(question.runs, hashes)
        kept.refute(segment, question.predicate.ordinal, question.runs, hashes, answers)
        answers[question.runs[:, 0] < 0] = ANSWER_UNUSUAL
        yield answers
