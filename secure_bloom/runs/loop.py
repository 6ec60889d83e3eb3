"""The one loop of every verb that writes files: list, check, process, publish, report."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from functools import partial
from typing import Generic

from secure_bloom.calling.arguments import Progress
from secure_bloom.running.uninterrupted import uninterrupted
from secure_bloom.runs.progress import Meter
from secure_bloom.runs.runner import Runner
from secure_bloom.runs.target import TableCommit, Target
from secure_bloom.runs.work import FileTask, OpenWork, R

#: Counts alone: no path, no name of a column or a key.
_LOG = logging.getLogger("secure_bloom.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[R]):
    """What a run has done: the report of each task, in order, and the commits to a table.

    ``gone`` are the files that other writers removed from the table meanwhile.  The run took
    ``seconds`` by the clock, and ``cpu_seconds`` of this process and those that it started.
    """

    tasks: tuple[FileTask, ...]
    reports: tuple[R, ...]
    commits: tuple[TableCommit, ...]
    gone: frozenset[str]
    notes: tuple[str, ...]
    dry_run: bool
    seconds: float
    cpu_seconds: float

    @property
    def changed(self) -> list[str]:
        """The paths of the new content of files that were changed."""
        pairs = zip(self.tasks, self.reports, strict=True)
        return [task.target or task.path for task, report in pairs if report.changes]


def run(
    open_work: OpenWork[R], target: Target, runner: Runner, progress: Progress | None = None
) -> Done[R]:
    """Do the work on the files of a target, and publish the results.

    Errors of the request come before anything is written. A file that fails is reported, and does
    not stop the others.  ``progress`` is called with the number of steps done, and of all steps.
    """
    started, used = time.perf_counter(), _cpu_seconds()
    work = open_work()
    files = target.listed()
    _LOG.info("begin: %d files", len(files))
    meter = Meter(progress, len(files), work.check(files))
    tasks: list[FileTask] = []
    reports: list[R] = []
    with target.publishing(dry_run=work.writes_nothing) as publication:
        for batch in publication.batches():
            found = runner.process(work, open_work, batch, meter)
            done = [found[task.path] for task in batch]
            if work.writes_nothing:
                publication.publish(done)
            else:
                # What a commit has begun is finished, also after Ctrl-C: else it would be unknown
                # what may be removed.
                uninterrupted(partial(publication.publish, done))
            tasks += batch
            reports += done
    seconds = round(time.perf_counter() - started, 3)
    failed = sum(report.status == "failed" for report in reports)
    _LOG.info("end: %d files, %d failed, %.1f seconds", len(reports), failed, seconds)
    return Done(
        tasks=tuple(tasks),
        reports=tuple(reports),
        commits=tuple(publication.commits),
        gone=target.gone(publication, reports),
        # The last ones come when the publishing ends.
        notes=tuple(publication.notes),
        dry_run=work.writes_nothing,
        seconds=seconds,
        cpu_seconds=_cpu_seconds() - used,
    )


def _cpu_seconds() -> float:
    """Return the CPU time of this process, and of its child processes that have ended."""
    return sum(os.times()[:4])
