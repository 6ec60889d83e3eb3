"""Plan one file: prune its row groups, the cheapest step first. docs/design/how-pruning-works.md.

The steps are partition values, statistics, dictionary, Bloom filter and page index: see
:class:`Step`.  A step marks conditions as false. A row group is skipped when the predicate cannot
be true any more.  No step reads bytes that could not change the answer, and no byte is read twice.
The steps that need the footer alone come first, before the file is opened again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.errors import KeyUnavailableError, PolicyError
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.predicates.tree import is_true
from secure_bloom.reading.pruning.batch import Batch, ask_filters_of_file, batch_of_file
from secure_bloom.reading.pruning.context import PruningContext
from secure_bloom.reading.pruning.file_pruner import FilePruner
from secure_bloom.reading.pruning.plan import FilePlan, Note, Reason
from secure_bloom.reading.pruning.steps.bloom_filters import prune_by_filters
from secure_bloom.reading.pruning.steps.dictionaries import prune_by_dictionaries
from secure_bloom.reading.pruning.steps.page_indexes import prune_by_page_index
from secure_bloom.reading.pruning.steps.partitions import prune_by_partition
from secure_bloom.reading.pruning.steps.statistics import prune_by_statistics
from secure_bloom.storage import CountedFile

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
