"""The files of one run: each is a task that may go to another process, and comes back as a report.

Task and report are plain records.  What is not, such as keys that were unwrapped, every process
opens for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from secure_bloom.adding.plan import ChunkOutcome, Task
from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.rewrite import FileRewriter, failed_report
from secure_bloom.errors import WorkerLostError
from secure_bloom.spreading import chosen_spread, each_file

if TYPE_CHECKING:
    from secure_bloom.adding.torn_append import Cut

#: Called with the number of column chunks done and the number of all column chunks.  Calls come
#: from any thread, one at a time.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTask:
    """One file that is to be rewritten, in its place or to ``target``.

    ``chunks`` is the number of column chunks that are to have filters; ``cut`` is what was cut off
    the file before.
    """

    path: str
    target: str | None = None
    cut: Cut | None = None
    chunks: int = 0


def rewrite_files(
    rewriter: FileRewriter,
    open_rewriter: Callable[[], FileRewriter],
    tasks: Sequence[FileTask],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> list[FileAddReport]:
    """The report of each task, in order; ``open_rewriter`` makes the same rewriter elsewhere."""
    meter = _Meter(progress, sum(task.chunks for task in tasks))
    spread = chosen_spread([task.path for task in tasks], jobs)
    reports: dict[int, FileAddReport] = {}
    # The column chunks of all files share one pool, so only as many as there are cores are in
    # memory.  One file computes while another one waits for the disk.
    with ThreadPoolExecutor(spread.threads) as chunks:
        done = each_file(
            partial(meter.metered, rewriter, chunks),
            partial(_work, open_rewriter),
            tasks,
            spread,
            lost=_lost_file,
            # After an interrupt a file at work finds no pool for its next chunk, and so it ends
            # before it writes.
            stop=partial(chunks.shutdown, wait=False, cancel_futures=True),
        )
        with closing(done):
            for index, report in done:
                reports[index] = report
                meter.finish(tasks[index])
    return [reports[index] for index in range(len(tasks))]


def _work(open_rewriter: Callable[[], FileRewriter]) -> Callable[[FileTask], FileAddReport]:
    """The work of another process."""
    rewriter = open_rewriter()
    return lambda task: rewriter.rewrite(task.path, target=task.target, cut=task.cut)


def _lost_file(task: FileTask, error: WorkerLostError) -> FileAddReport:
    error.path = task.path
    return failed_report(task.path, error, cuts=(task.cut,) if task.cut else ())


class _Meter:
    """Counts the column chunks that are done, and tells ``progress`` of each."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._counted: dict[str, int] = {}
        self._lock = threading.Lock()
        self._advance(0)

    def metered(self, rewriter: FileRewriter, chunks: Executor, task: FileTask) -> FileAddReport:
        """Rewrite one file, and count its chunks, each when it is done."""

        def run(
            work: Callable[[Task], ChunkOutcome], tasks: Iterable[Task]
        ) -> Iterator[ChunkOutcome]:
            for outcome in chunks.map(work, tasks):
                # If another writer was faster, the file is planned again: same chunks, not counted.
                counted = self._counted.get(task.path, 0)
                if counted < task.chunks:
                    self._counted[task.path] = counted + 1
                    self._advance(1)
                yield outcome

        return rewriter.rewrite(task.path, target=task.target, run=run, cut=task.cut)

    def finish(self, task: FileTask) -> None:
        """Count the chunks of a file that are not counted yet: it is done."""
        left = task.chunks - self._counted.get(task.path, 0)
        self._counted[task.path] = task.chunks
        self._advance(left)

    def _advance(self, chunks: int) -> None:
        with self._lock:
            self._done += chunks
            if self._progress is not None:
                self._progress(self._done, self._total)
