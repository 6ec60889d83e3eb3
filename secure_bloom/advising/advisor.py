"""Advise which columns of a table are to have filters, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike

from secure_bloom.advising.candidates import Candidate
from secure_bloom.advising.query_log import QueryLog, load_query_log
from secure_bloom.advising.sample import TableSample, sample_table
from secure_bloom.advising.table_advice import BetterFpp, ColumnAdvice, TableAdvice, conclude
from secure_bloom.advising.trial import MOST_LOOKUPS, ColumnTrial, LookupComparison, Trier
from secure_bloom.advising.verdict import AdviceVerdict, ColumnCase, decide, refusal
from secure_bloom.calling.arguments import Progress
from secure_bloom.calling.options import BloomFilterOptions, as_names
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.schema import in_any_case, unknown_column

#: Another false-positive probability -> about the size of its filter, as a multiple of one of 1 %.
_OTHERS = {0.1: 0.5, 0.001: 2.0}
#: It must save this share of the bytes that an absent value reads with a filter of 1 %.
_WORTH = 0.1
#: Smaller probabilities.  One is tried if a lookup in the table would read this many in vain.
_SMALLER, _IN_VAIN = (0.001, 0.0001), 1.0
#: What larger filters add must be saved by this number of lookups in an open table, which reads its
#: filters once.
_SOON = 1000

#: Tries the column with a probability.
TryWith = Callable[[float], ColumnTrial]


def better_fpp(trial: ColumnTrial, try_with: TryWith) -> BetterFpp | None:
    """Return a false positive probability that suits the table better than 1 %, or None.

    Its trial is returned with it. Another probability is tried only if an estimate promises that
    it is better, because each trial takes as long as the first one.
    """
    return _with_less_to_read(trial, try_with) or _with_fewer_in_vain(trial, try_with)


def _with_less_to_read(trial: ColumnTrial, try_with: TryWith) -> BetterFpp | None:
    """Return a probability with which lookups of absent values read clearly less, or None."""
    for fpp, size in _OTHERS.items():
        if trial.absent is not None and _promises(trial.absent, fpp, size):
            other = try_with(fpp)
            if _is_better(other.absent, trial.absent, 1 - _WORTH) and (
                trial.present is None or _is_better(other.present, trial.present, 1)
            ):
                return BetterFpp(fpp=fpp, trial=other, reads_less=True)
    return None


def _with_fewer_in_vain(trial: ColumnTrial, try_with: TryWith) -> BetterFpp | None:
    """Return a smaller probability that saves reads in a table of many row groups, or None.

    A filter lets some row groups pass by chance. The more row groups a table has, the more of
    them a lookup reads without finding a row. An open table reads its filters once, but reads
    these row groups at each lookup.
    """
    absent, first = trial.absent, BloomFilterOptions().fpp
    if absent is None or absent.without.after_statistics * first < _IN_VAIN:
        return None
    asked = absent.without.after_statistics
    fpp = next((fpp for fpp in _SMALLER if asked * fpp < _IN_VAIN), _SMALLER[-1])
    saved = (first - fpp) * (absent.without.bytes - absent.without.footers)
    other = try_with(fpp)
    pays = other.bytes_added - trial.bytes_added <= _SOON * saved
    return BetterFpp(fpp=fpp, trial=other, reads_less=False) if pays else None


def _promises(absent: LookupComparison, fpp: float, size: float) -> bool:
    """Return whether lookups should read less with filters of this ``size`` and ``fpp``."""
    footers, now = absent.with_.footers, absent.with_.bytes
    pages = absent.without.bytes - absent.without.footers
    filters = max(0.0, now - footers - BloomFilterOptions().fpp * pages)
    return footers + size * filters + fpp * pages < (1 - _WORTH) * now


def _is_better(other: LookupComparison | None, first: LookupComparison, share: float) -> bool:
    return other is not None and other.with_.bytes < share * first.with_.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterOptions:
    """The options of the filters that are tried: one ``fpp`` for all, or those of a policy."""

    fpp: float | None
    policy: KeyPolicy | None

    def of(self, candidate: Candidate) -> BloomFilterOptions:
        """Return the options for one column."""
        if self.fpp is not None:
            return BloomFilterOptions(fpp=self.fpp)
        found = {} if self.policy is None else self.policy.bloom_columns()
        return found.get(candidate.name, BloomFilterOptions())


def advise_columns(
    paths: Sequence[str],
    columns: str | Iterable[str] | None,
    queries: str | PathLike[str] | None,
    *,
    fpp: float | None,
    access: Access,
    progress: Progress | None,
) -> TableAdvice:
    """Return a verdict for each column. All are tried on one sample of the table."""
    options = FilterOptions(fpp=fpp, policy=access.policy)
    sample, reading = _sample(paths, access, progress)
    wanted = wanted_columns(sample, columns)
    log = None if queries is None else load_query_log(queries, column_names(sample))
    trier = Trier(sample, reading.resolver(), reading.policy, wanted=access.policy)
    meter = _Ticks(progress, len(wanted) * _steps(sample))
    found = []
    for candidate in wanted:
        wanted_filter = options.of(candidate)
        found.append(advise_column(trier, sample, candidate, wanted_filter, log, meter.tick))
        meter.reach(len(found) * _steps(sample))
    return conclude(sample, found, log, in_clear=reading is not access)


def _sample(
    paths: Sequence[str], access: Access, progress: Progress | None
) -> tuple[TableSample, Access]:
    """Return the sample of a table, and the keys and policy with which it is read.

    If the table is in clear although there is a policy, the policy is not applied. Nothing is
    written, and filters under the policy would rule out the same row groups.
    """
    try:
        return sample_table(paths, access.resolver(), progress=progress), access
    except PolicyError:
        if access.policy is not None:
            without = Access()
            with suppress(SecureBloomError):
                return sample_table(paths, without.resolver(), progress=progress), without
        raise


def wanted_columns(
    sample: TableSample, columns: str | Iterable[str] | None
) -> tuple[Candidate, ...]:
    """Return the columns to advise on. Raises PolicyError for a column that the table lacks."""
    if columns is None:
        return sample.candidates
    found: dict[str, Candidate] = {}
    known = [it.name for it in sample.candidates]
    for asked in as_names("columns", columns):
        name = asked if asked in known else in_any_case(asked, known) or asked
        below = [it for it in sample.candidates if it.name == name] or [
            it for it in sample.candidates if it.name.startswith(f"{name}.")
        ]
        if not below:
            raise unknown_column(name, column_names(sample))
        found.update((it.name, it) for it in below)
    return tuple(found.values())


def advise_column(
    trier: Trier,
    sample: TableSample,
    candidate: Candidate,
    options: BloomFilterOptions,
    log: QueryLog | None,
    tick: Callable[[], None] = lambda: None,
) -> ColumnAdvice:
    """Return the advice on one column."""
    advice = partial(
        ColumnAdvice,
        column=candidate.name,
        type=candidate.type,
        fpp=options.fpp,
        share=None if log is None else log.share(candidate.name),
    )
    reason = refusal(candidate, log)
    if reason is not None or not sample.row_groups:
        return advice(verdict=AdviceVerdict.NO, reason=reason or "no values: the table has no rows")
    trial = trier.column(candidate, options, tick)
    case = ColumnCase(candidate=candidate, sample=sample, log=log, trial=trial)
    verdict, reason = decide(case)
    better: BetterFpp | None = None
    is_new = not trial.had_filters
    if verdict is AdviceVerdict.GAINS and is_new and options == BloomFilterOptions():
        better = better_fpp(
            trial, lambda fpp: trier.column(candidate, BloomFilterOptions(fpp=fpp), tick)
        )
    return advice(
        verdict=verdict,
        reason=reason,
        key=trier.policy_key(candidate),
        stored_key=trial.key,
        trial=trial,
        better=better,
    )


def column_names(sample: TableSample) -> list[str]:
    """Return the dotted names of the table's columns."""
    return [candidate.name for candidate in sample.candidates]


def _steps(sample: TableSample) -> int:
    """Return about how many ticks the trial of a column makes."""
    return len(sample.row_groups) + 1 + 2 * MOST_LOOKUPS


class _Ticks:
    """Report progress as steps done of ``total``. A column may need fewer steps than estimated."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def tick(self) -> None:
        self.reach(min(self._done + 1, self._total))

    def reach(self, done: int) -> None:
        self._done = done
        if self._progress is not None:
            self._progress(done, self._total)
