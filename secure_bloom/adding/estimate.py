"""Estimate what an add to a lake of any size costs, from the plans of a sample of its files.

    sample       SampledTarget: a random part of the files, the same one in every run
    estimate     estimated: fits size and CPU time per file by straight lines over the file's size,
                 and adds them up for all files

The constants below are costs that a dry run cannot measure, because it writes nothing.
docs/planning.md says how they were measured, and how well the model held.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from secure_bloom.adding.report import CostEstimate, FileAddReport
from secure_bloom.runs.target import DirectPublication, Publication, Target
from secure_bloom.runs.work import FileReport, FileTask
from secure_bloom.storage.paths import total_size

#: A dry run plans all of at most this many files, else the smaller number of them.
_ALL, SAMPLED = 1_000, 128
#: CPU seconds of replacing a file, and of copying a byte of it.
_REPLACE, _COPY = 0.5e-3, 1.0 / 2**30
#: CPU seconds of one file of a table's log, for reading the log and for the commit, and memory.
_TABLE_SECONDS, _TABLE_FILE = 70e-6, 2_100
#: Requests for an object that is put whole, and for a larger one beside its parts and chunks.
_WHOLE, _WHOLE_REQUESTS, _REQUESTS = 5 * 2**20, 5, 8
#: Bytes of a part that the store copies, and of one that is uploaded; files of a page of a listing.
_COPIED, _UPLOADED, _PAGE = 256 * 2**20, 8 * 2**20, 1_000
#: Memory of a driver on Spark, Python and JVM, and for each file.
_DRIVER, _DRIVER_FILE = 200 * 2**20, 15
#: Memory of a process on this machine, for each file and for each filter that it reports.
_PROCESS, _REPORT, _FILTER_REPORT = 150 * 2**20, 720, 370
#: Numbers of cores for which an estimate has the hours.
CORES: Final = (1, 8, 64, 512)


@dataclass(slots=True, kw_only=True)
class SampledTarget:
    """The target of a dry run: all files of ``target``, or a random sample if there are many.

    ``sample`` is the number of files that the caller wants. ``every`` has all files of the target
    once they are listed.
    """

    target: Target
    sample: int | None = None
    every: Sequence[str] = field(default=(), init=False)
    chosen: Sequence[str] = field(default=(), init=False)
    seconds: float = field(default=0.0, init=False)

    def listed(self) -> Sequence[str]:
        """Return the chosen files, in their order."""
        started = time.perf_counter()
        self.every = self.target.listed()
        self.seconds = time.perf_counter() - started
        count = len(self.every)
        most = self.sample if self.sample is not None else count if count <= _ALL else SAMPLED
        if most >= count:
            self.chosen = self.every
        else:
            # A generator with a seed of its own: two dry runs plan the same files.
            places = random.Random(count).sample(range(count), most)  # noqa: S311
            self.chosen = [self.every[place] for place in sorted(places)]
        return self.chosen

    @property
    def is_part(self) -> bool:
        """Whether files are left out."""
        return len(self.chosen) < len(self.every)

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[Publication]:
        """Return the publication of the target. A sample is not published."""
        if self.is_part:
            return nullcontext(DirectPublication([FileTask(path) for path in self.chosen]))
        return self.target.publishing(dry_run=dry_run)

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return the files that ``target`` reports as removed by other writers."""
        return frozenset() if self.is_part else self.target.gone(publication, reports)


def estimated(
    target: SampledTarget,
    reports: Sequence[FileAddReport],
    cpu: float,
    *,
    sizes: Mapping[str, int] | None = None,
    in_place: bool = False,
) -> CostEstimate | None:
    """Return the cost of a run on all files of a target, or None if no file could be planned.

    ``cpu`` is the CPU time of the dry run in seconds.  ``sizes`` has the size of every file, if a
    table's log has them.
    """
    planned = [it for it in reports if it.bytes_before is not None and it.status != "failed"]
    if not planned:
        return None
    before = [float(it.bytes_before or 0) for it in planned]
    files = len(target.every)
    size = total_size(target.every) if sizes is None else sum(sizes[it] for it in target.every)
    if size is None:
        size = round(files * sum(before) / len(before))
    added = [(it.bytes_after or 0) - (it.bytes_before or 0) for it in planned]
    growth = _AmountBySize.through(before, added)
    bytes_added = growth.total(files, size)
    # The time of each file is by the clock: files that wait for each other, or for a store, compute
    # less.  Nor is the start of worker processes a cost of the files.
    spent = [it.seconds for it in planned]
    computed = min(1.0, cpu / sum(spent)) if sum(spent) else 0.0
    planning = _AmountBySize.through(before, [computed * it for it in spent])
    changed = sum(it.changes for it in planned) / len(planned)
    copied = 0 if in_place else size
    # One process does this part, however many cores the rest has.
    alone = target.seconds if sizes is None else files * _TABLE_SECONDS
    listed = 0 if sizes is None else files * _TABLE_FILE
    cpu_total = planning.total(files, size) + changed * (files * _REPLACE + copied * _COPY)
    filters = sum(len(it.filters) for it in planned) / len(planned)
    requests = _AmountBySize.through(before, [float(_requests(it)) for it in planned])
    objects = requests.total(files, size) + files / _PAGE
    return CostEstimate(
        files=files,
        bytes=size,
        sampled_files=len(planned),
        sampled_bytes=round(sum(before)),
        bytes_added=round(bytes_added),
        share_added=round(bytes_added / size, 6) if size else 0.0,
        margin=round(growth.margin(files, bytes_added), 4) if target.is_part else 0.0,
        requests=round(objects),
        cpu_hours=round((cpu_total + alone) / 3600, 9),
        listing_seconds=round(target.seconds, 3),
        driver_memory=_DRIVER + files * _DRIVER_FILE + listed,
        process_memory=round(_PROCESS + files * (_REPORT + filters * _FILTER_REPORT) + listed),
        hours={str(cores): round((cpu_total / cores + alone) / 3600, 9) for cores in CORES},
    )


def _requests(report: FileAddReport) -> int:
    """Return about how many requests a file takes in an object store."""
    size = report.bytes_before or 0
    if not report.changes:
        return 1
    if size < _WHOLE:
        return _WHOLE_REQUESTS
    reads = sum(1 if it.source == "dictionary" else 2 for it in report.filters)
    added = max(0, (report.bytes_after or 0) - size)
    return _REQUESTS + reads + -(-size // _COPIED) + -(-added // _UPLOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _AmountBySize:
    """A line fitted to a sample: a file of ``size`` bytes has the amount ``least + slope * size``.

    ``spread`` is the standard error of the mean of the residuals.
    """

    least: float
    slope: float
    spread: float

    @classmethod
    def through(cls, sizes: Sequence[float], amounts: Sequence[float]) -> _AmountBySize:
        """Return the line of least squares. Neither of its numbers is below 0."""
        count = len(sizes)
        if count == 0:
            return cls(least=0.0, slope=0.0, spread=0.0)
        middle, level = sum(sizes) / count, sum(amounts) / count
        spread = sum((size - middle) ** 2 for size in sizes)
        together = sum(
            (size - middle) * (amount - level) for size, amount in zip(sizes, amounts, strict=True)
        )
        slope = max(0.0, together / spread) if spread else 0.0
        if level < slope * middle:
            slope = level / middle if middle else 0.0
        least = level - slope * middle
        left = [a - least - slope * s for s, a in zip(sizes, amounts, strict=True)]
        variance = sum(it * it for it in left) / max(1, count - 2)
        return cls(least=least, slope=slope, spread=(variance / count) ** 0.5)

    def total(self, files: int, size: int) -> float:
        """Return the amount of all files."""
        return files * self.least + size * self.slope

    def margin(self, files: int, total: float) -> float:
        """Return two standard errors of the amount of all files, divided by ``total``."""
        return 2 * files * self.spread / total if total > 0 else 0.0
