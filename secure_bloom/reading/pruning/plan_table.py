"""Plan the files of a table, some files at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pyarrow as pa

from secure_bloom.errors import located
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.reading.pruning.batch import TableSurvivors, ask_table
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.kept_columns import KeptColumns
from secure_bloom.reading.pruning.plan import FilePlan
from secure_bloom.reading.pruning.plan_file import Planner
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order

#: To start threads takes longer than to look for values in this many row groups.
_FEW = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """Files that were planned together: how many, and the plans of the files that may have rows."""

    files: int
    plans: list[FilePlan] = field(default_factory=list)


class PlannedFiles:
    """Plans the files of a table in their order. Can be iterated once.

    Plans without rows are left out, unless the read is explained.  Each footer is dropped once its
    file is planned.
    """

    def __init__(
        self, files: TableFiles, context: PruningContext, kept: KeptColumns | None = None
    ) -> None:
        self._files = files
        self._context = context
        self._kept = kept
        self._survivors = TableSurvivors()
        #: Made with the first plan: most questions to an open table leave nothing to plan.
        self._planner: Planner
        self._explain = context.explain

    def __iter__(self) -> Iterator[PlannedRun]:
        """Plan some files at a time. An error comes after the plans of the files before it."""
        self._planner = Planner(self._context)
        for ordinals in self._files.runs(self._ordinals):
            found = PlannedRun(files=len(ordinals))
            try:
                for plan in self._together(ordinals):
                    if plan.surviving or self._explain:
                        found.plans.append(plan)
            except Exception:
                yield found
                raise
            yield found

    @property
    def are_none(self) -> bool:
        """Whether bounds and filters in memory leave no file of the table."""
        return not self._ordinals

    @property
    def are_few(self) -> bool:
        """Whether bounds and filters in memory leave few row groups of the table, or none."""
        groups = sum(map(len, self._survivors.left.values()))
        return groups <= _FEW and self._survivors.asked.issuperset(self._ordinals)

    @functools.cached_property
    def _ordinals(self) -> Sequence[int]:
        """Return the files that bounds and filters in memory leave, or all files without them."""
        if self._kept is None:
            return range(len(self._files))
        self._survivors = ask_table(self._kept, self._context)
        if self._survivors.asked:
            # Files without survivors are not planned, which would check them.
            self._files.check(self._context.request.needed)
        return self._survivors.ordinals(len(self._files))

    def _left(self, ordinal: int) -> Mapping[int, frozenset[int]] | None:
        """Return the row groups of a file that may match, or None if memory does not say."""
        asked = self._survivors
        return asked.left.get(ordinal, {}) if ordinal in asked.asked else None

    def _together(self, ordinals: Sequence[int]) -> Iterator[FilePlan]:
        if self._files.workers > 1:
            yield from in_order(self._planned, ordinals, self._files.workers)
            return
        self._files.prepare_keys(ordinals)
        yield from map(self._planned, ordinals)

    def _planned(self, ordinal: int) -> FilePlan:
        """Return the plan of a file, with the rows that the table's log deletes."""
        plan, state = self._plan(ordinal), self._files.state
        deleted, equality = state.deleted(ordinal), state.equality_deletes(ordinal)
        if deleted is None and not equality:
            return plan
        return replace(plan, deleted=deleted, equality=equality)

    def _known(self, ordinal: int) -> tuple[Values, Mapping[str, pa.Scalar]]:
        """Return the values in a file that the table knows.

        These are partition values, and values of columns that the file lacks.
        """
        return self._files.state.partitions[ordinal], self._files.state.fills(ordinal)

    def _plan(self, ordinal: int) -> FilePlan:
        """Return the plan of a file. The file is opened only if its footer does not rule it out."""
        files, planner, left = self._files, self._planner, self._left(ordinal)
        try:
            footer = files.kept(ordinal)
            if footer is not None:
                with located(path=footer.path):
                    started = planner.begin(footer, *self._known(ordinal), left)
                    plan = planner.plan_by_footer(started)
                if plan is not None:
                    return plan
                with ExitStack() as stack, located(path=footer.path):
                    return planner.plan(
                        started, lambda: stack.enter_context(files.opened(ordinal))[0]
                    )
            with files.opened(ordinal) as (file, footer):
                started = planner.begin(footer, *self._known(ordinal), left)
                plan = planner.plan_by_footer(started)
                return planner.plan(started, lambda: file) if plan is None else plan
        finally:
            files.forget(ordinal)
