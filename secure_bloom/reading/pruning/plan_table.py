"""Plan the files of a table, some at a time. docs/design/how-pruning-works.md.

The row groups of a file are pruned by the cheapest step first: partition values, statistics,
dictionary, Bloom filter and page index, see :class:`Step`.  A step marks conditions as false. A row
group is skipped when the predicate cannot be true any more.  No step reads bytes that could not
change the answer, and no byte is read twice.  The steps that need the footer alone come first,
before the file is opened again.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pyarrow as pa

from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.errors import KeyUnavailableError, PolicyError, located
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.predicates.tree import is_true
from secure_bloom.reading.pruning.batch import (
    Batch,
    TableSurvivors,
    ask_filters_of_file,
    ask_table,
    batch_of_file,
)
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.file_pruner import FilePruner
from secure_bloom.reading.pruning.kept_columns import KeptColumns
from secure_bloom.reading.pruning.plan import FilePlan, Note, Reason
from secure_bloom.reading.pruning.steps.bloom_filters import prune_by_filters
from secure_bloom.reading.pruning.steps.dictionaries import prune_by_dictionaries
from secure_bloom.reading.pruning.steps.page_indexes import prune_by_page_index
from secure_bloom.reading.pruning.steps.statistics import prune_by_partition, prune_by_statistics
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import CountedFile

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


_NO_FILLS: Mapping[str, pa.Scalar] = {}
#: The steps that read the file, cheapest first; each sees what the ones before left.
_OF_FILE = (
    prune_by_dictionaries,
    prune_by_filters,
    prune_by_page_index,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedFile:
    """A file whose planning has begun. It has a ``batch`` if its row groups are asked together."""

    pruner: FilePruner
    batch: Batch | None


class Planner:
    """Plans the files of one request.

    If a condition must be checked on rows of a file and its column's key is missing, that is an
    error. With ``without_filter_keys`` the condition is left out instead.  A wrong key is an error
    in both cases.
    """

    def __init__(self, context: PruningContext) -> None:
        self._context = context
        self._needed = context.request.needed
        #: Columns whose conditions were left out, with a warning.
        self._left_out: set[str] = set()

    def begin(
        self,
        footer: Footer,
        partition: Values,
        fills: Mapping[str, pa.Scalar] = _NO_FILLS,
        left: Mapping[int, frozenset[int]] | None = None,
    ) -> StartedFile:
        """Prune by the partition values and the footer of a file.

        ``fills`` are values of columns that the file may lack. With ``left``, only these row
        groups of the file are planned.
        """
        footer.check(self._needed)
        pruner = FilePruner(context=self._context, footer=footer, partition=partition, fills=fills)
        prune_by_partition(pruner)
        if left is not None:
            pruner.keep(left)
            return StartedFile(pruner=pruner, batch=None)
        return StartedFile(pruner=pruner, batch=batch_of_file(pruner))

    def plan_by_footer(self, started: StartedFile) -> FilePlan | None:
        """Return the plan of a file that its footer decides, or None if it must be opened."""
        pruner, batch = started.pruner, started.batch
        if self._context.request.predicate is None:
            return pruner.plan()
        if batch:
            return None
        if batch is not None:
            pruner.keep({})
        else:
            prune_by_statistics(pruner)
            if pruner.alive():
                return None
        self._check_unavailable(pruner)
        return pruner.plan()

    def plan(self, started: StartedFile, open_file: Callable[[], CountedFile]) -> FilePlan:
        """Return the plan of a file, which is opened if a step reads more than the footer.

        Errors carry row group and column.
        """
        pruner = started.pruner
        pruner.may_open(open_file)
        if started.batch is not None:
            pruner.keep(ask_filters_of_file(pruner, started.batch))
            prune_by_statistics(pruner)
        for step in _OF_FILE if pruner.alive() else ():
            step(pruner)
        self._check_unavailable(pruner)
        return pruner.plan()

    def _check_unavailable(self, pruner: FilePruner) -> None:
        """Raise an error if a condition must be checked and its key is missing or wrong."""
        for condition, error in pruner.unavailable.items():
            predicate = pruner.predicates[condition]
            text = f"no key for column {predicate.leaf.name}: the condition is left out"
            for group in pruner.groups:
                note = Note(column=predicate.leaf.name, step=None, text=text, reason=Reason.NO_KEY)
                group.notes.append(note)
            if pruner.alive() and isinstance(error, KeyMisfitError):
                # To leave it out would hide a wrong keyring, or key material that was altered.
                raise error
            if pruner.alive() and not self._context.without_filter_keys:
                raise _with_way_out(error)
        if pruner.unavailable and pruner.alive():
            self._leave_out(pruner)

    def _leave_out(self, pruner: FilePruner) -> None:
        """Warn that conditions are left out. Raise PolicyError if nothing is left of the predicate.

        Without this, a read for one row would return all rows.
        """
        predicate, missing = self._context.request.predicate, pruner.unavailable
        names = {pruner.predicates[condition].leaf.name for condition in missing}
        shown = ", ".join(sorted(names))
        if predicate is not None and is_true(predicate, lambda it: it.ordinal in missing):
            raise PolicyError(
                f"no condition is left: the key of {shown} is missing, and every row may match",
                hint="leave the condition out to read all rows, or give the key",
            )
        if not names <= self._left_out:
            self._left_out |= names
            warnings.warn(
                f"the key of {shown} is missing: its condition is left out, and rows are returned "
                "for which it may not hold",
                stacklevel=2,
            )


#: A way out of a missing key of a condition's column.
WITHOUT_CONDITION = (
    "to read without this condition, which returns also rows that do not fulfil it: "
    "without_filter_keys=True or --without-filter-keys"
)


def _with_way_out(error: KeyUnavailableError) -> KeyUnavailableError:
    error.hint = f"{error.hint or ''}; {WITHOUT_CONDITION}".lstrip("; ")
    return error
