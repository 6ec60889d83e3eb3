"""Share the files of a run: among processes if there are many small files, else among threads.

The work on a small file is mostly Python, which runs in one thread at a time.  A large file is
read, decoded and hashed in compiled code, which threads run in parallel. A process takes a quarter
of a second to start.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from secure_bloom.errors import PolicyError, WorkerLostError
from secure_bloom.running.ordered_pool import AT_ONCE, TINY, in_growing_threads, in_order

A = TypeVar("A")
B = TypeVar("B")

#: Files for each process: fewer are done before another process is ready.
_FILES_A_PROCESS: Final = 128
#: Files that are larger in the mean are work for threads.
_SMALL: Final = 16 * 1024 * 1024
#: Seconds of work here, after which the rest is estimated.
_TRIAL: Final = 0.3
#: Seconds of work that is worth other processes, which take about half a second to start.
_WORTH: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How many processes share the files of a run. With one process, also its number of threads.

    Each process works on up to ``files`` files at once.  This is more than the number of threads
    that compute, because files may wait for a disk or a store.  With ``begins_here`` this process
    works on the first files, and others start only if the work on the rest takes long.
    """

    processes: int
    threads: int
    files: int
    begins_here: bool = False


def chosen_parallelism(
    files: int,
    jobs: int | None,
    *,
    mean_size: int | None,
    at_once: int,
    by_threads: bool = False,
) -> Parallelism:
    """Return how ``files`` files are shared among ``jobs`` cores. None means all cores available.

    ``mean_size`` is None for objects of a store, of which ``at_once`` are open in parallel.
    ``by_threads`` is for work whose threads share slow answers, such as those of a KMS.  Raises
    PolicyError if ``jobs`` is below 1.
    """
    if jobs is not None and jobs < 1:
        raise PolicyError(f"jobs is {jobs}, it must be at least 1")
    threads = _cores() if jobs is None else jobs
    # Whoever names a number of jobs need not have many files, only enough to share.
    processes = min(threads, files // (_FILES_A_PROCESS if jobs is None else 2))
    if by_threads or mean_size is None or mean_size > _SMALL:
        # One chunk of an object is on its way while another one is decoded.
        threads = threads if at_once == 1 else 2 * threads
        return Parallelism(processes=1, threads=threads, files=max(threads, at_once))
    threads = 1 if mean_size <= TINY else threads
    return Parallelism(
        processes=max(1, processes),
        threads=threads,
        files=AT_ONCE,
        begins_here=jobs is None and processes > 1,
    )


def each_file(
    work: Callable[[A], B],
    open_work: Callable[[], Callable[[A], B]],
    files: Sequence[A],
    parallelism: Parallelism,
    *,
    lost: Callable[[A, WorkerLostError], B],
    stop: Callable[[], None] = lambda: None,
    ahead: Callable[[Sequence[A]], Iterable[A]] = iter,
) -> Generator[tuple[int, B], None, None]:
    """Yield the index of each file and the result of ``work`` on it, as files are done.

    ``open_work`` is pickled, and makes the same work in another process. If processes cannot do the
    work, threads of this process do it. ``ahead`` then yields each file when its work can begin,
    and ``stop`` is called if the caller ends early. ``lost`` makes the result of a file whose
    process died.
    """
    left = dict(enumerate(files))
    here = partial(_in_threads, work, parallelism, stop)
    if parallelism.begins_here:
        for index, result in enumerate(here(_for_a_trial(ahead(files), len(files)))):
            del left[index]
            yield index, result
    if parallelism.processes > 1 and left:
        # Not needed, and so not loaded, where one process does it all.
        from secure_bloom.running.worker_processes import in_processes

        indexes, others = list(left), list(left.values())
        shared = in_processes(
            open_work, others, parallelism.processes, at_once=parallelism.files, lost=lost
        )
        for number, result in shared:
            del left[indexes[number]]
            yield indexes[number], result
    yield from zip(left, here(ahead(list(left.values()))), strict=True)


def _in_threads(
    work: Callable[[A], B],
    parallelism: Parallelism,
    stop: Callable[[], None],
    files: Iterable[A],
) -> Generator[B, None, None]:
    """Return the results of files in their order, from threads of this process."""
    if parallelism.threads == 1:
        return in_growing_threads(work, files, parallelism.files, stop=stop)
    # All results are kept by the caller anyway, so they have room here.
    return in_order(work, files, parallelism.files, room=sys.maxsize, stop=stop)


def _for_a_trial(files: Iterable[A], count: int) -> Iterator[A]:
    """Yield files until it is known whether processes are worth starting for the files left.

    If they are not worth it, all files are yielded.
    """
    start = time.perf_counter()
    for number, file in enumerate(files):
        spent = time.perf_counter() - start
        if number and spent > _TRIAL and spent / number * (count - number) > _WORTH:
            return
        yield file


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
