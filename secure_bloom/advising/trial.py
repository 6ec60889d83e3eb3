"""Try one column: build its filters in memory, and look values up without and with them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from secure_bloom.adding.request import FilterGuard, FilterRequest, WantedFilters
from secure_bloom.adding.rewrite_plan import RewritePlan, plan_rewrite
from secure_bloom.advising.candidates import Candidate
from secure_bloom.advising.lookup_values import DistinctValues, SampledValue, lookup_values
from secure_bloom.advising.sample import SampleFiles, TableSample
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import located
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.reading.file_reports import FileReadReport
from secure_bloom.reading.lookup_trials import LookupTrials, RowGroups
from secure_bloom.reading.pruning.plan import Reads, Step
from secure_bloom.storage import CountedFile, InputFile
from secure_bloom.storage.inputs import OverlaidFile, covered

#: Lookups of each kind, present and absent, at most; of absent values some may turn out present.
MOST_LOOKUPS, _MOST_VALUES = 60, 120
#: In a single row group lookups hardly differ: fewer values are drawn, and two lookups that read
#: the same number of bytes are enough.
_FEW_VALUES, _FEW_LOOKUPS = 4, 2
#: After this many lookups they end early if the mean is known this well: chance lets some absent
#: values pass, and fewer lookups may not meet one.
_LEAST_LOOKUPS, _SURE = 10, 0.02
#: They end early when they have read this many bytes.
_LEAST_AT_ALL, _MOST_READ = 3, 384 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupCost:
    """The bytes that one lookup reads of the whole table, on average.

    ``skipped`` has the number of row groups by the step that ruled them out. ``read`` is the number
    of row groups whose pages are read.  ``error`` is the standard error of ``bytes`` over the
    lookups that were tried.
    """

    bytes: float
    error: float
    footers: float
    read: float
    skipped: dict[Step, float]

    @property
    def after_statistics(self) -> float:
        """The number of row groups that partition folders and statistics do not rule out."""
        later = (n for step, n in self.skipped.items() if step.reads is not Reads.FOOTER)
        return self.read + sum(later)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupComparison:
    """Lookups of one kind, without the filter and with it."""

    without: LookupCost
    with_: LookupCost
    lookups: int

    @property
    def saved(self) -> float:
        """How many bytes less a lookup reads with the filter."""
        return self.without.bytes - self.with_.bytes

    @property
    def share(self) -> float:
        """The share of its bytes that a lookup saves with the filter."""
        return self.saved / max(1.0, self.without.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTrial:
    """The results for one column. A comparison is None if there is no value of its kind."""

    bytes_added: float
    bytes_read_to_build: float
    seconds_to_build: float
    key: str | None
    had_filters: bool
    present: LookupComparison | None
    absent: LookupComparison | None
    distinct: DistinctValues


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Built:
    """The sampled files with filters in memory, and the cost of building them."""

    files: SampleFiles
    plans: dict[str, RewritePlan]
    added: int
    read: int
    seconds: float

    def open(self, path: str) -> InputFile:
        """Return the file as it would be with the filters."""
        file, plan = self.files.open(path), self.plans[path]
        return file if plan.is_empty else OverlaidFile(file, plan.keep, plan.tail)


class Trier:
    """Measures what a lookup reads with and without a filter, for columns of one table.

    ``wanted`` is the policy that names the keys of the columns, or None.
    """

    def __init__(
        self,
        sample: TableSample,
        resolver: KeyResolver,
        policy: KeyPolicy | None,
        *,
        wanted: KeyPolicy | None = None,
    ) -> None:
        self._sample = sample
        self._files = SampleFiles(sample, resolver)
        self._wanted = wanted or policy
        self._resolver = resolver
        self._policy = policy
        self._plain = LookupTrials(
            sample.table, resolver, open_file=self._files.open, ignores_filters=True
        )

    def column(
        self,
        candidate: Candidate,
        options: BloomFilterOptions,
        tick: Callable[[], None] = lambda: None,
    ) -> ColumnTrial:
        """Build the filters of one column, and look values up. Calls ``tick`` from time to time."""
        sample, path = self._sample, candidate.lookup
        built = self._build(candidate.name, options, tick)
        trials = LookupTrials(sample.table, self._resolver, open_file=built.open, like=self._plain)
        count = _FEW_VALUES if self._is_small else _MOST_VALUES
        values = lookup_values(self._plain, sample, path, count)
        tick()
        scale = sample.rows / max(1, sample.chosen_rows)
        reports = [report for plan in built.plans.values() for report in plan.filters]
        return ColumnTrial(
            bytes_added=built.added * scale,
            bytes_read_to_build=built.read * scale,
            seconds_to_build=built.seconds * scale,
            key=next((report.key for report in reports if report.key), None),
            had_filters=bool(reports) and all(report.action == "kept" for report in reports),
            present=self._compared(trials, path, values.present, tick, is_present=True),
            absent=self._compared(trials, path, values.absent, tick, is_present=False),
            distinct=values.distinct,
        )

    @property
    def _is_small(self) -> bool:
        return self._sample.chosen_count == 1

    def policy_key(self, candidate: Candidate) -> str | None:
        """Return the key that the policy names for a column, if there is a policy."""
        return None if self._wanted is None else self._wanted.key_for(candidate.path)

    def _build(self, name: str, options: BloomFilterOptions, tick: Callable[[], None]) -> _Built:
        request = FilterRequest(WantedFilters(columns={name: options}), FilterGuard(self._policy))
        plans, added, read = {}, 0, 0
        started = time.perf_counter()
        for path, groups in self._sample.row_groups.items():
            with located(path=path), self._files.open(path) as opened:
                file = CountedFile(opened)
                keys = file_keys(self._resolver, opened)
                plans[path] = plan_rewrite(file, keys, request, row_groups=groups)
            if not (plan := plans[path]).is_empty:
                # What an earlier run left dead is no gain of this column.
                added += plan.size + plan.reclaimed - opened.size
            read += covered(file.extents)
            tick()
        seconds = time.perf_counter() - started
        return _Built(files=self._files, plans=plans, added=added, read=read, seconds=seconds)

    def _compared(
        self,
        trials: LookupTrials,
        path: tuple[str, ...],
        lookups: Sequence[SampledValue],
        tick: Callable[[], None],
        *,
        is_present: bool,
    ) -> LookupComparison | None:
        without: list[_Tried] = []
        with_: list[_Tried] = []
        in_vain = 0
        for lookup in lookups:
            found = self._tried(self._plain, path, lookup)
            if found.rows == 0 or is_present:
                without.append(found)
                with_.append(self._tried(trials, path, lookup))
            else:
                in_vain += found.read
            tick()
            least = _FEW_LOOKUPS if self._is_small else _LEAST_LOOKUPS
            if len(without) == MOST_LOOKUPS or _is_enough(without, with_, in_vain, least):
                break
        if not without:
            return None
        return LookupComparison(
            without=self._cost(without, without),
            with_=self._cost(with_, without),
            lookups=len(without),
        )

    def _tried(self, trials: LookupTrials, path: tuple[str, ...], lookup: SampledValue) -> _Tried:
        """Return what one lookup of the whole table would read.

        The cost of the value's own row group is exact, and the cost of all others is scaled up.
        """
        sample = self._sample
        if not sample.is_cut:
            reports = trials.explain(path, lookup.value, sample.row_groups)
            origin = [report for report in reports if report.path == lookup.path]
            others = [report for report in reports if report.path != lookup.path]
            unseen = (sample.file_count - 1, len(sample.row_groups) - 1)
            footers = sum(report.bytes_footer for report in reports)
        else:
            origin = trials.explain(path, lookup.value, {lookup.path: [lookup.row_group]})
            others = trials.explain(path, lookup.value, _without(sample.row_groups, lookup))
            unseen = (sample.row_group_count - 1, sample.chosen_count - 1)
            footers = sum({it.path: it.bytes_footer for it in (*origin, *others)}.values())
        scale = unseen[0] / unseen[1] if unseen[1] else 0.0
        return _Tried(
            footers=footers,
            numbers=_numbers(origin) + scale * _numbers(others),
            rows=sum(group.rows_found or 0 for it in (*origin, *others) for group in it.row_groups),
            read=sum(report.bytes_read for report in (*origin, *others)),
        )

    def _cost(self, tried: Sequence[_Tried], without: Sequence[_Tried]) -> LookupCost:
        # Footers grow a little with filters; all files' are known as they are.
        seen = sum(it.footers for it in without) / len(without)
        footers = self._sample.bytes_footers * sum(it.footers for it in tried) / len(tried) / seen
        numbers = np.array([it.numbers for it in tried])
        read, *skipped = numbers[:, 1:].mean(axis=0).tolist()
        return LookupCost(
            bytes=footers + float(numbers[:, 0].mean()),
            error=float(numbers[:, 0].std() / np.sqrt(max(1, len(tried) - 1))),
            footers=footers,
            read=read,
            skipped=dict(zip(_SKIPPING, skipped, strict=True)),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tried:
    """What one lookup reads: ``numbers`` are those of :func:`_numbers`, for the whole table.

    ``footers`` are bytes of footers, ``rows`` the rows found, ``read`` all bytes read in the
    sample.
    """

    footers: int
    numbers: NDArray[np.float64]
    rows: int
    read: int


_SKIPPING = tuple(step for step in Step if step.reads is not Reads.PAGES)


def _numbers(reports: Sequence[FileReadReport]) -> NDArray[np.float64]:
    """Return an array of numbers: bytes without footers, row groups read, row groups skipped.

    There is one number of skipped row groups for each step.
    """
    groups = [group for report in reports for group in report.row_groups]
    steps = Counter(group.skipped_by for group in groups)
    size = sum(report.bytes_judged_by + report.bytes_pages for report in reports)
    read = sum(group.pages_are_read for group in groups)
    return np.array([size, read, *(steps[step] for step in _SKIPPING)], np.float64)


def _without(row_groups: RowGroups, lookup: SampledValue) -> RowGroups:
    """Return all row groups but the lookup's own."""
    others = {
        path: [g for g in groups if (path, g) != (lookup.path, lookup.row_group)]
        for path, groups in row_groups.items()
    }
    return {path: groups for path, groups in others.items() if groups}


def _is_enough(
    without: Sequence[_Tried], with_: Sequence[_Tried], in_vain: int, least: int
) -> bool:
    """Return whether more lookups would hardly change the means, or would take too long.

    At least ``least`` lookups are made, unless they take too long. ``in_vain`` is the number of
    bytes read for values that were meant to be absent, but were found in the table.
    """
    if in_vain + sum(it.read for it in (*without, *with_)) > _MOST_READ:
        return len(with_) >= _LEAST_AT_ALL
    if len(with_) < least:
        return False
    for tried in (without, with_):
        sizes = np.array([it.footers + it.numbers[0] for it in tried])
        if sizes.std() / np.sqrt(len(sizes) - 1) > _SURE * sizes.mean():
            return False
    return True
