"""Judge the row groups of a file, cheapest step first.

Partition values, statistics, dictionary, Bloom filter, page index: see :class:`Step`.

A step rules conditions out, one by one; a row group is skipped when the predicate cannot be true
without them.  No step reads anything that could not change the answer, and nothing is read twice.
What the footer tells alone is asked first, of many files one after the other, with none of them
open.
"""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.encryption.keys import KeyMisfitError
from secure_bloom.errors import KeyUnavailableError
from secure_bloom.reading.lockstep import Job
from secure_bloom.reading.pruning.batch_pruner import Sieve, Sifted
from secure_bloom.reading.pruning.column_predicates import Question
from secure_bloom.reading.pruning.context import Inquiry
from secure_bloom.reading.pruning.file_pruner import FileJudge
from secure_bloom.reading.pruning.plan import FilePlan, Note, Reason
from secure_bloom.reading.pruning.steps.bloom_filters import judge_filters
from secure_bloom.reading.pruning.steps.dictionaries import judge_dictionaries
from secure_bloom.reading.pruning.steps.page_index import judge_page_index
from secure_bloom.reading.pruning.steps.partitions import judge_partition
from secure_bloom.reading.pruning.steps.statistics import judge_statistics
from secure_bloom.reading.table.footer import FileFooter
from secure_bloom.reading.table.hive_partitions import Values
from secure_bloom.storage import CountedFile

#: Cheapest first, behind what the footer tells; each sees what the ones before left.
_OF_FILE = (
    judge_dictionaries,
    judge_filters,
    judge_page_index,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A file that is being planned; ``sifted`` where its row groups were judged together."""

    judge: FileJudge
    sifted: Sifted | None


class Planner:
    """Plans the files of one request.

    Where the inquiry is one ``without_filter_keys``, a condition on a column whose key is not to be
    had is left out; else it is an error of any file in which rows are left to be checked, as is a
    key that does not fit anyway.
    """

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._sieve = Sieve(inquiry)

    def begin(self, footer: FileFooter, partition: Values) -> Job[Begun]:
        """What the footer and the folders of a file rule out together."""
        needed = self._inquiry.request.needed
        footer.refuse_clear(i for name in needed for i in footer.columns.below(name))
        judge = FileJudge(inquiry=self._inquiry, footer=footer, partition=partition)
        judge_partition(judge)
        return Begun(judge=judge, sifted=(yield from self._sieve.sift(judge)))

    def plan_by_footer(self, begun: Begun) -> FilePlan | None:
        """The plan of a file whose footer tells enough; None for one that is to be opened."""
        judge, sifted = begun.judge, begun.sifted
        if self._inquiry.request.predicate is None:
            return judge.plan()
        if sifted is None:
            judge_statistics(judge)
        elif not sifted.passed:
            judge.keep({})
        if judge.alive() if sifted is None else sifted.passed:
            return None
        self._check_unavailable(judge)
        return judge.plan()

    def plan(self, begun: Begun, file: CountedFile) -> FilePlan:
        """That of another, now open; errors carry row group and column."""
        judge = begun.judge
        judge.open(file)
        if begun.sifted is not None:
            self._sieve.ask(judge, begun.sifted)
            judge_statistics(judge)
        for step in _OF_FILE if judge.alive() else ():
            step(judge)
        self._check_unavailable(judge)
        return judge.plan()

    def _check_unavailable(self, judge: FileJudge) -> None:
        """Raise for a condition that must be checked and cannot be."""
        for condition, error in judge.unavailable.items():
            _note_left_out(judge, judge.questions[condition])
            if judge.alive() and isinstance(error, KeyMisfitError):
                # Left out, a wrong keyring or altered material would go unnoticed.
                raise error
            if judge.alive() and not self._inquiry.without_filter_keys:
                raise _with_way_out(error)


def _note_left_out(judge: FileJudge, asked: Question) -> None:
    text = f"no key for column {asked.leaf.name}: the condition is left out"
    for group in judge.groups:
        note = Note(column=asked.leaf.name, step=None, text=text, reason=Reason.NO_KEY)
        group.notes.append(note)


def _with_way_out(error: KeyUnavailableError) -> KeyUnavailableError:
    error.hint = (
        f"{error.hint or ''}; to read on without this condition, and get rows for "
        "which it may not hold: without_filter_keys=True or --without-filter-keys"
    ).lstrip("; ")
    return error
