"""Count the steps of a run, such as column chunks, and report them to the caller."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

from secure_bloom.calling.arguments import Progress
from secure_bloom.runs.work import FileTask, Steps


class Meter:
    """Counts steps, and calls ``progress`` for each.

    ``steps_a_file`` is the estimate that it begins with, or None if each file is one step.
    """

    def __init__(self, progress: Progress | None, files: int, steps_a_file: int | None) -> None:
        self._progress = progress
        self._files = files
        self._estimate = 1 if steps_a_file is None else steps_a_file
        self._total = files * self._estimate
        self._done = 0
        #: The steps of each file that was opened, and how many of them are counted.
        self._steps: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()
        if steps_a_file is not None:
            self._report()

    def steps(self, task: FileTask, pool: Executor, *, is_plan: bool = False) -> Steps:
        """Return a function that does the steps of a file in a pool, and counts them.

        Each step is counted when it is done. The only step of the only file of a run that writes
        nothing, ``is_plan``, is done here: it needs no other thread.
        """

        def each(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
            self._open(task, len(items))
            is_alone = is_plan and self._files == len(items) == 1
            for outcome in map(work, items) if is_alone else pool.map(work, items):
                self._count(task, 1)
                yield outcome

        return each

    def finish(self, task: FileTask, steps: int) -> None:
        """Count the steps of a finished file that are not counted yet."""
        # A file that failed, or was done by another process, never opened its steps here.
        self._open(task, steps)
        steps, counted = self._steps[task.path]
        self._count(task, steps - counted)

    def _open(self, task: FileTask, steps: int) -> None:
        with self._lock:
            # If another writer was faster, the file is planned again: same steps, opened once.
            if task.path not in self._steps:
                self._steps[task.path] = steps, 0
                self._total += steps - self._estimate

    def _count(self, task: FileTask, more: int) -> None:
        with self._lock:
            steps, counted = self._steps[task.path]
            # A file that is planned twice counts its steps twice.
            more = min(more, steps - counted)
            self._steps[task.path] = steps, counted + more
            self._done += more
            self._report()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)
