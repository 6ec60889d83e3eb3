"""Process the files of a run in threads and processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.runs.progress import Meter
from secure_bloom.runs.work import FileTask, OpenWork, R, Work
from secure_bloom.storage.paths import files_at_once, mean_size


class Runner(Protocol):
    """Does the work of a run on its files. It knows neither filters nor tables."""

    def process(
        self, work: Work[R], open_work: OpenWork[R], tasks: Sequence[FileTask], meter: Meter
    ) -> dict[str, R]:
        """Return the report of each task by the path of its file.

        ``open_work`` makes the same work in another process.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRunner:
    """Threads for few or large files, processes for many small ones. ``jobs`` limits the cores."""

    jobs: int | None = None

    def process(
        self, work: Work[R], open_work: OpenWork[R], tasks: Sequence[FileTask], meter: Meter
    ) -> dict[str, R]:
        """Return the report of each task by the path of its file."""
        targets = {task.path: task.target for task in tasks}
        parallelism = chosen_parallelism(
            len(tasks),
            self.jobs,
            mean_size=mean_size(list(targets)),
            at_once=files_at_once(targets),
            by_threads=work.asks_for_each_key,
        )
        # Not in other processes, which wait for a KMS while they compute: here keys come ahead.
        work = work.in_threads(parallelism.threads)
        reports: dict[str, R] = {}
        # The steps of all files share one pool, so only as many as there are cores are in memory.
        # One file computes while another one waits for the disk.
        # To hand the step of a small file to another thread takes as long as the work on it.
        with (
            _CallingThreads()
            if parallelism.threads == 1
            else ThreadPoolExecutor(parallelism.threads)
        ) as pool:
            process = partial(_process, work, meter, pool)
            keys = partial(_ahead, work.prefetch(targets))
            # After an interrupt a file at work finds no pool for its next step, and so it ends
            # before it writes.
            stop = partial(pool.shutdown, wait=False, cancel_futures=True)
            if work.writes_nothing and len(tasks) == 1:
                done = _here(process, keys(tasks), stop)
            else:
                done = each_file(
                    process,
                    partial(_opened, open_work),
                    tasks,
                    parallelism,
                    lost=work.failed,
                    stop=stop,
                    ahead=keys,
                )
            # Closed here: an error of `progress` must not leave the pool at work on files.
            with closing(done):
                for index, report in done:
                    reports[tasks[index].path] = report
                    meter.finish(tasks[index], work.steps_of(report))
        return reports


def _here(
    process: Callable[[FileTask], R], tasks: Iterable[FileTask], stop: Callable[[], None]
) -> Generator[tuple[int, R], None, None]:
    """Process tasks in the calling thread. An interrupt may end the work anywhere."""
    try:
        yield from enumerate(map(process, tasks))
    except BaseException:
        stop()
        raise


def _process(work: Work[R], meter: Meter, pool: Executor, task: FileTask) -> R:
    return work.process(task, meter.steps(task, pool, is_plan=work.writes_nothing))


def _opened(open_work: OpenWork[R]) -> Callable[[FileTask], R]:
    """Open the work in a worker process. Return a function that processes one file."""
    work = open_work()
    return lambda task: work.process(task, map)


def _ahead(ahead: KeyPrefetch, tasks: Sequence[FileTask]) -> Iterator[FileTask]:
    """Yield each task when the keys of its file are available."""
    # The paths come in the order of the tasks.
    return (task for task, _ in zip(tasks, ahead.each([it.path for it in tasks]), strict=True))


class _CallingThreads(Executor):
    """An executor that runs each call in the thread that asks for its result."""

    def __init__(self) -> None:
        self._is_shut_down = False

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **_options: Any) -> Any:
        """Yield ``fn`` of each item. Each call runs when its result is asked for."""
        for items in zip(*iterables, strict=False):
            if self._is_shut_down:
                raise RuntimeError("cannot work on a step after shutdown")
            yield fn(*items)

    def shutdown(self, *_arguments: Any, **_options: Any) -> None:
        """Make every later call fail."""
        self._is_shut_down = True
