"""The state of one file while it is pruned: what the steps found out about its row groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from secure_bloom.errors import KeyUnavailableError
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.predicates.decided import Decided
from secure_bloom.predicates.tree import LOOKUPS
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate, StoredValue
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.page_bounds import Rows
from secure_bloom.reading.pruning.plan import FilePlan, Note, Reason, RowGroupPlan, Step
from secure_bloom.storage import CountedFile

#: A column predicate, the chunk of its column, and the values that may still be there.
Lookup = tuple[ColumnPredicate, Chunk, tuple[StoredValue, ...]]


@dataclass(slots=True, kw_only=True, eq=False)
class RowGroupState:
    """One row group. ``left`` has, for each condition, the values that may still be there.

    ``chunks`` are the column chunks opened so far, by column.  ``ruled_out`` has the ordinals of
    conditions that are true for no row, ``passed`` the ordinals of conditions whose filter may have
    a value.
    """

    index: int
    rows: int
    ruled_out: Decided
    passed: frozenset[int] = frozenset()
    left: dict[int, tuple[StoredValue, ...]] = field(default_factory=dict)
    chunks: dict[int, Chunk] = field(default_factory=dict)
    ranges: Rows | None = None
    skipped_by: Step | None = None
    notes: list[Note] = field(default_factory=list)

    def plan(self) -> RowGroupPlan:
        """Return the outcome for the row group."""
        return RowGroupPlan(
            row_group=self.index,
            rows=self.rows,
            skipped_by=self.skipped_by,
            ranges=None if self.ranges is None else tuple(self.ranges),
            notes=tuple(self.notes),
        )


class FilePruner:
    """One file, whose row groups go through the steps together.

    ``predicates`` has, by ordinal, the conditions on a single leaf of the file.  ``unavailable``
    has the conditions whose column key is not available, with the error.  ``ruled_out`` are the
    conditions that are false for the whole file, ``partitioned_out`` those of them on partitions.
    ``fills`` are the values of columns that the file may lack.
    """

    def __init__(
        self,
        *,
        context: PruningContext,
        footer: Footer,
        partition: Values,
        fills: Mapping[str, pa.Scalar],
    ) -> None:
        self.context = context
        self.explain = context.explain
        self._open: Callable[[], CountedFile] | None = None
        self._file: CountedFile | None = None
        self.footer = footer
        self.partition = partition
        self.fills = fills
        self.ruled_out: frozenset[int] = frozenset()
        self.partitioned_out: frozenset[int] = frozenset()
        self.predicates: dict[int, ColumnPredicate] = {}
        self.unavailable: dict[int, KeyUnavailableError] = {}

    def may_open(self, open_file: Callable[[], CountedFile]) -> None:
        """Allow steps to open the file and to read more than its footer."""
        self._open = open_file

    @property
    def file(self) -> CountedFile:
        """The file, which is opened when it is first read."""
        if self._file is None:
            if self._open is None:
                raise ValueError("the file may not be opened")
            self._file = self._open()
        return self._file

    @functools.cached_property
    def groups(self) -> list[RowGroupState]:
        """All row groups. After :meth:`keep` these are only the kept row groups."""
        return [self._group(index) for index in range(len(self.footer.row_groups))]

    def keep(self, left: Mapping[int, frozenset[int]]) -> None:
        """Drop all row groups except those in ``left``.

        For each of these, ``left`` has the conditions whose filters were checked.
        """
        self.groups = [self._group(index, passed) for index, passed in left.items()]

    def _group(self, index: int, passed: frozenset[int] = frozenset()) -> RowGroupState:
        rows = self.footer.rows[index]
        is_left = self.context.can_match(self.ruled_out)
        # Conditions on partitions that decide alone are named, whatever else the file lacks.
        by_partition = not is_left and not self.context.can_match(self.partitioned_out)
        skipped_by = Step.PARTITION if by_partition else None if is_left else Step.MISSING_COLUMN
        return RowGroupState(
            index=index,
            rows=rows,
            ruled_out=self.context.ruled_out(self.ruled_out),
            passed=passed,
            skipped_by=skipped_by if rows else Step.EMPTY,
        )

    def alive(self) -> list[RowGroupState]:
        """Return the row groups that nothing has ruled out so far."""
        return [group for group in self.groups if group.skipped_by is None]

    def plan(self) -> FilePlan:
        """Return the outcome for the file. It has all checked row groups, even skipped ones."""
        return FilePlan(
            path=self.footer.path,
            footer=self.footer,
            partition=self.partition,
            fills=self.fills,
            row_groups=tuple([group.plan() for group in self.groups]),
            unchecked=frozenset(self.unavailable),
            extents=() if self._file is None else tuple(self._file.extents),
        )

    def rule_out(self, group: RowGroupState, step: Step, *conditions: int) -> bool:
        """Mark the conditions of a step as false. Return whether the row group is skipped now."""
        for condition in conditions:
            group.ruled_out.add(condition)
        if group.skipped_by is None and group.ruled_out.is_decided:
            group.skipped_by = step
        return group.skipped_by is not None

    def could_help(self, group: RowGroupState, conditions: Iterable[int]) -> bool:
        """Return whether the row group would be skipped if all these conditions were false."""
        return group.ruled_out.would_decide(conditions)

    def chunk(self, group: RowGroupState, predicate: ColumnPredicate) -> Chunk | None:
        """Return the column chunk of a predicate, or None if its key is not available."""
        condition = predicate.condition.ordinal
        if condition in self.unavailable:
            return None
        known = group.chunks.get(predicate.ordinal)
        if known is None:
            try:
                known = self.footer.chunk_to_read(group.index, predicate.ordinal)
            except KeyUnavailableError as error:
                self.unavailable[condition] = error
                return None
            group.chunks[predicate.ordinal] = known
        return known

    def lookups(self, group: RowGroupState, serves: Callable[[Chunk], bool]) -> list[Lookup]:
        """Return the lookups that a step can answer.

        Return [] if their answers could not skip the row group.
        """
        found = []
        for ordinal, values in group.left.items():
            predicate = self.predicates[ordinal]
            if (
                values
                and ordinal not in group.ruled_out
                and ordinal not in group.passed
                and predicate.condition.operator in LOOKUPS
                and serves(group.chunks[predicate.ordinal])
            ):
                found.append((predicate, group.chunks[predicate.ordinal], values))
        ordinals = [predicate.condition.ordinal for predicate, _, _ in found]
        return found if found and self.could_help(group, ordinals) else []

    def note(
        self,
        group: RowGroupState,
        predicate: ColumnPredicate,
        step: Step,
        text: str,
        *,
        reason: Reason | None = None,
        fpp: float | None = None,
        chance: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Record what a step found, if the read is to be explained."""
        if self.explain:
            group.notes.append(
                Note(
                    column=predicate.leaf.name,
                    step=step,
                    text=text,
                    reason=reason,
                    fpp=fpp,
                    chance=chance,
                    rows=rows,
                )
            )
