"""Judge the row groups of a file, cheapest step first.

Partition values, statistics, dictionary, Bloom filter, page index: see :class:`Step`.

A step rules conditions out, one by one; a row group is skipped when the predicate cannot be true
without them.  No step reads anything that could not change the answer, and nothing is read twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from secure_bloom.errors import KeyUnavailableError, located
from secure_bloom.footer import Chunk
from secure_bloom.reading.binding import (
    BoundAll,
    BoundCondition,
    BoundPredicate,
    bound_conditions,
)
from secure_bloom.reading.bounds import chunk_bounds, remaining
from secure_bloom.reading.columns import has_type_order
from secure_bloom.reading.dictionaries import (
    dictionary_size,
    has_all_values,
    may_be_in_dictionary,
)
from secure_bloom.reading.exact import true_rows
from secure_bloom.reading.extents import read_extents
from secure_bloom.reading.filters import Hashes, has_filter, read_filters
from secure_bloom.reading.footers import FileFooter
from secure_bloom.reading.page_index import (
    Rows,
    can_judge,
    column_index_extent,
    common,
    decode_offset_index,
    matching_rows,
    merged,
    offset_index_extent,
)
from secure_bloom.reading.partitions import Values, partition_scalar
from secure_bloom.reading.plans import FilePlan, Note, RowGroupPlan, Step
from secure_bloom.reading.predicates import Operator
from secure_bloom.reading.questions import Question, StoredValue, encodings_of, question
from secure_bloom.reading.tables import Request
from secure_bloom.storage import CountedFile

_LOOKUPS = {Operator.EQUAL, Operator.IN}


class Planner:
    """Plans the files of one request; what two files have in common is worked out once.

    With ``without_filter_keys`` a condition on a column whose key is not to be had is left out;
    else it is an error of any file in which rows are left to be checked.
    """

    def __init__(
        self, request: Request, *, without_filter_keys: bool = False, explain: bool = False
    ) -> None:
        self.request = request
        self.without_filter_keys = without_filter_keys
        self.explain = explain
        self.conditions = bound_conditions(request.predicate)
        self._questions: dict[tuple[int, int], Question] = {}
        self._hashes: dict[int, Hashes] = {}

    def plan(self, file: CountedFile, footer: FileFooter, partition: Values) -> FilePlan:
        """Which row groups of ``file`` may have rows; errors carry row group and column."""
        judge = _FileJudge(planner=self, file=file, footer=footer, partition=partition)
        judge.run()
        return judge.plan()

    def question(self, condition: BoundCondition, footer: FileFooter) -> Question | None:
        """What the condition asks of the file; None where that is no single leaf of it."""
        ordinal = footer.columns.ordinals.get(condition.name)
        if ordinal is None:
            return None
        leaf = footer.columns.leaves[ordinal]
        if leaf.path != condition.path:
            return None
        # Files with the same schema share their leaves.
        known = self._questions.get((condition.ordinal, id(leaf)))
        if known is None:
            known = question(condition, ordinal, leaf)
            self._questions[condition.ordinal, id(leaf)] = known
        return known

    def hashes(self, asked: Question, values: tuple[StoredValue, ...]) -> Hashes:
        """The hashes of values, a run of those that are asked for; made once for all of them."""
        known = self._hashes.get(id(asked))
        if known is None:
            known = self._hashes[id(asked)] = Hashes.of(encodings_of(asked.values or ()))
        if values is asked.values:
            return known
        if len(known.hashes) != len(asked.keys):
            # Some value has two forms, so places do not tell.
            return Hashes.of(encodings_of(values))
        return known.run(bisect_left(asked.keys, values[0].key), len(values))


def can_match(predicate: BoundPredicate, ruled_out: Iterable[int]) -> bool:
    """Whether the predicate can be true while the conditions ``ruled_out`` are not."""
    if isinstance(predicate, BoundCondition):
        return predicate.ordinal not in ruled_out
    parts = (can_match(part, ruled_out) for part in predicate.parts)
    return all(parts) if isinstance(predicate, BoundAll) else any(parts)


@dataclass(slots=True, kw_only=True, eq=False)
class _Group:
    """One row group while it is judged."""

    index: int
    rows: int
    ruled_out: set[int] = field(default_factory=set)
    left: dict[int, tuple[StoredValue, ...]] = field(default_factory=dict)
    chunks: dict[int, Chunk] = field(default_factory=dict)
    ranges: Rows | None = None
    skipped_by: Step | None = None
    notes: list[Note] = field(default_factory=list)


class _FileJudge:
    """One file, its row groups going through the steps together."""

    def __init__(
        self, *, planner: Planner, file: CountedFile, footer: FileFooter, partition: Values
    ) -> None:
        self._planner = planner
        self._file = file
        self._footer = footer
        self._partition = partition
        self._predicate = planner.request.predicate
        self._groups = [
            _Group(index=i, rows=group.num_rows) for i, group in enumerate(footer.row_groups)
        ]
        self._questions: dict[int, Question] = {}
        self._unavailable: dict[int, KeyUnavailableError] = {}

    def run(self) -> None:
        """All steps, each on the row groups that the ones before left."""
        for group in self._groups:
            if group.rows == 0:
                group.skipped_by = Step.EMPTY
        if self._predicate is None:
            return
        self._judge_partition()
        for step in (self._statistics, self._dictionaries, self._filters, self._page_index):
            step([group for group in self._groups if group.skipped_by is None])
        self._check_unavailable()

    def plan(self) -> FilePlan:
        """What the steps left."""
        return FilePlan(
            path=self._footer.path,
            footer=self._footer,
            partition=self._partition,
            row_groups=tuple(_finished(group) for group in self._groups),
            unchecked=frozenset(self._unavailable),
            bytes_read=self._file.bytes_read,
        )

    def _judge_partition(self) -> None:
        """Conditions whose answer is one for the whole file: on its folders, on absent columns."""
        out = set()
        for condition in self._planner.conditions:
            column = condition.path[0]
            if column in self._planner.request.partitions:
                value = partition_scalar(
                    self._planner.request.schema.field(column), self._partition
                )
            elif column not in self._footer.columns.arrow.names:
                value = pa.scalar(None, self._planner.request.schema.field(column).type)
            else:
                found = self._planner.question(condition, self._footer)
                if found is not None:
                    self._questions[condition.ordinal] = found
                continue
            if not _is_true(condition, value):
                out.add(condition.ordinal)
        for group in self._groups:
            self._rule_out(group, out, Step.PARTITION)

    def _rule_out(self, group: _Group, conditions: Iterable[int], step: Step) -> bool:
        """Take the conditions as not true; whether that ends the row group."""
        group.ruled_out.update(conditions)
        if (
            group.skipped_by is None
            and self._predicate is not None
            and not can_match(self._predicate, group.ruled_out)
        ):
            group.skipped_by = step
        return group.skipped_by is not None

    def _statistics(self, groups: Sequence[_Group]) -> None:
        orders = self._footer.metadata.column_orders
        for group in groups:
            for ordinal, asked in self._questions.items():
                chunk = self._chunk(group, asked)
                if chunk is None or ordinal in group.ruled_out:
                    continue
                bounds = chunk_bounds(
                    asked,
                    chunk.meta_data.statistics,
                    chunk.meta_data.num_values,
                    has_type_order=has_type_order(orders, asked.ordinal),
                )
                left = remaining(asked, bounds)
                if left is not None:
                    group.left[ordinal] = left
                    text = (
                        "no bounds to conclude from" if bounds.low is None else "do not exclude it"
                    )
                    self._note(group, asked, Step.STATISTICS, text)
                elif self._rule_out(group, [ordinal], Step.STATISTICS):
                    break

    def _chunk(self, group: _Group, asked: Question) -> Chunk | None:
        """The chunk that a question asks; None where its key is not to be had."""
        condition = asked.condition.ordinal
        if condition in self._unavailable:
            return None
        if asked.ordinal not in group.chunks:
            try:
                group.chunks[asked.ordinal] = self._footer.chunk(group.index, asked.ordinal)
            except KeyUnavailableError as error:
                self._unavailable[condition] = error
                return None
        return group.chunks[asked.ordinal]

    def _lookups(
        self, group: _Group, serves: Callable[[Chunk], bool]
    ) -> list[tuple[Question, Chunk, tuple[StoredValue, ...]]]:
        """The questions for single values that a step serves; none where it could not help."""
        found = []
        for ordinal, asked in self._questions.items():
            chunk = group.chunks.get(asked.ordinal)
            values = group.left.get(ordinal)
            if (
                chunk is not None
                and values
                and ordinal not in group.ruled_out
                and asked.condition.operator in _LOOKUPS
                and asked.values is not None
                and serves(chunk)
            ):
                found.append((asked, chunk, values))
        return found if self._could_help(group, (q.condition.ordinal for q, _, _ in found)) else []

    def _could_help(self, group: _Group, conditions: Iterable[int]) -> bool:
        return self._predicate is not None and not can_match(
            self._predicate, group.ruled_out.union(conditions)
        )

    def _dictionaries(self, groups: Sequence[_Group]) -> None:
        for group in groups:
            for asked, chunk, values in self._lookups(group, _dictionary_is_cheaper):
                with located(row_group=group.index, column=asked.leaf.name):
                    found = may_be_in_dictionary(self._file, chunk, encodings_of(values))
                if not found and self._rule_out(group, [asked.condition.ordinal], Step.DICTIONARY):
                    break
                text = (
                    "maybe: the dictionary has it" if found else "the dictionary does not have it"
                )
                self._note(group, asked, Step.DICTIONARY, text)

    def _filters(self, groups: Sequence[_Group]) -> None:
        lookups = {group.index: self._lookups(group, has_filter) for group in groups}
        chunks = {
            (index, asked.ordinal): chunk
            for index, found in lookups.items()
            for asked, chunk, _ in found
        }
        filters = read_filters(self._file, chunks)
        if self._planner.explain:
            self._note_without_filter(groups)
        for group in groups:
            for asked, _, values in lookups[group.index]:
                bloom_filter = filters[group.index, asked.ordinal]
                if self._planner.hashes(asked, values).any_in(bloom_filter):
                    if self._planner.explain:
                        self._note(
                            group, asked, Step.BLOOM_FILTER, _maybe(bloom_filter.fpp(), values)
                        )
                elif self._rule_out(group, [asked.condition.ordinal], Step.BLOOM_FILTER):
                    break

    def _note_without_filter(self, groups: Sequence[_Group]) -> None:
        """Say of each column why its filter was not asked, where it has none or could not help."""
        for group in groups:
            for ordinal, asked in self._questions.items():
                chunk = group.chunks.get(asked.ordinal)
                if chunk is None or ordinal in group.ruled_out:
                    continue
                if asked.condition.operator not in _LOOKUPS:
                    text = f"not asked: filters answer = and in, not {asked.condition.operator}"
                elif not has_filter(chunk):
                    text = "no filter"
                elif asked.values is None:
                    text = "not asked: the value has no single form in this column"
                elif not self._could_help(group, [ordinal]):
                    text = "asked only if that could rule the whole condition out"
                else:
                    continue
                self._note(group, asked, Step.BLOOM_FILTER, text)

    def _note(self, group: _Group, asked: Question, step: Step, text: str) -> None:
        if self._planner.explain:
            group.notes.append(Note(column=asked.leaf.name, step=step, text=text))

    def _page_index(self, groups: Sequence[_Group]) -> None:
        extents = {}
        asked_of: dict[int, list[Question]] = {}
        for group in groups:
            for asked in self._questions.values():
                chunk = group.chunks.get(asked.ordinal)
                if chunk is not None and self._has_page_index(asked, chunk):
                    asked_of.setdefault(group.index, []).append(asked)
                    place = (group.index, asked.ordinal)
                    with located(row_group=group.index, column=asked.leaf.name):
                        extents[*place, "column"] = column_index_extent(chunk)
                        extents[*place, "offset"] = offset_index_extent(chunk)
        content = read_extents(self._file, {k: v for k, v in extents.items() if v is not None})
        for group in groups:
            if group.index in asked_of:
                self._judge_pages(group, asked_of[group.index], content)

    def _has_page_index(self, asked: Question, chunk: Chunk) -> bool:
        column = chunk.column_chunk
        return (
            can_judge(asked)
            and has_type_order(self._footer.metadata.column_orders, asked.ordinal)
            and None not in (column.column_index_offset, column.column_index_length)
            and None not in (column.offset_index_offset, column.offset_index_length)
        )

    def _judge_pages(
        self,
        group: _Group,
        asked: Sequence[Question],
        content: dict[tuple[int, int, str], memoryview],
    ) -> None:
        rows: dict[int, Rows] = {ordinal: [] for ordinal in group.ruled_out}
        for one in asked:
            chunk = group.chunks[one.ordinal]
            with located(row_group=group.index, column=one.leaf.name):
                places = decode_offset_index(chunk, content[group.index, one.ordinal, "offset"])
                index = content[group.index, one.ordinal, "column"]
                if one.condition.ordinal not in rows:
                    rows[one.condition.ordinal] = matching_rows(one, chunk, index, places)
        found = _rows_of(self._predicate, rows, group.rows)
        if not found:
            group.skipped_by = Step.PAGE_INDEX
        elif found != [(0, group.rows)]:
            group.ranges = found
        left = sum(end - start for start, end in found)
        for one in asked:
            self._note(group, one, Step.PAGE_INDEX, f"leaves {left} of {group.rows} rows")

    def _check_unavailable(self) -> None:
        """Raise for a condition that must be checked and cannot be."""
        alive = next((group for group in self._groups if group.skipped_by is None), None)
        for condition, error in self._unavailable.items():
            asked = self._questions[condition]
            for group in self._groups:
                text = f"no key for column {asked.leaf.name}: the condition is left out"
                group.notes.append(Note(column=asked.leaf.name, step=None, text=text))
            if alive is not None and not self._planner.without_filter_keys:
                error.hint = (
                    f"{error.hint or ''}; to read on without this condition, and get rows for "
                    "which it may not hold: without_filter_keys"
                ).lstrip("; ")
                raise error


def _finished(group: _Group) -> RowGroupPlan:
    return RowGroupPlan(
        row_group=group.index,
        rows=group.rows,
        skipped_by=group.skipped_by,
        ranges=None if group.ranges is None else tuple(group.ranges),
        notes=tuple(group.notes),
    )


def _is_true(condition: BoundCondition, value: pa.Scalar) -> bool:
    """Whether the condition holds for rows that all have this value in its top-level column."""
    table = pa.table({condition.path[0]: pa.array([value.as_py()], value.type)})
    return bool(true_rows(condition, table)[0].as_py())


def _dictionary_is_cheaper(chunk: Chunk) -> bool:
    """Whether the dictionary has all values, and no filter tells the same for fewer bytes."""
    size = dictionary_size(chunk)
    if size == 0 or (has_filter(chunk) and size >= (chunk.meta_data.bloom_filter_length or 0)):
        return False
    return has_all_values(chunk)


def _maybe(fpp: float, values: Sequence[StoredValue]) -> str:
    chance = 1 - (1 - fpp) ** len(values)
    of = "" if len(values) == 1 else f" for {len(values)} values together"
    return f"maybe: the filter's false-positive probability is {100 * chance:.2g} %{of}"


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
