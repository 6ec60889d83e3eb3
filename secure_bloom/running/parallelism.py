"""Share the files of a run: among processes if there are many small files, else among threads.

The work on a small file is mostly Python, which runs in one thread at a time.  A large file is
read, decoded and hashed in compiled code, which threads run in parallel. A process takes a quarter
of a second to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from secure_bloom.errors import PolicyError, WorkerLostError
from secure_bloom.running.ordered_pool import AT_ONCE, TINY, in_growing_threads, in_order

A = TypeVar("A")
B = TypeVar("B")

#: Files for each process: fewer are done before another process is ready.
_FILES_A_PROCESS: Final = 128
#: Files that are larger in the mean are work for threads.
_SMALL: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelism:
    """How many processes share the files of a run. With one process, also its number of threads.

    Each process works on up to ``files`` files at once.  This is more than the number of threads
    that compute, because files may wait for a disk or a store.
    """

    processes: int
    threads: int
    files: int


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
    return Parallelism(processes=max(1, processes), threads=threads, files=AT_ONCE)


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

    ``open_work`` is pickled, and makes the same work in another process.  If processes cannot do
    the work, threads of this process do it, on the files in the order of ``ahead``, and ``stop`` is
    called if the caller ends early.  ``lost`` makes the result of a file whose process died.
    """
    left = dict(enumerate(files))
    if parallelism.processes > 1:
        # Not needed, and so not loaded, where one process does it all.
        from secure_bloom.running.worker_processes import in_processes

        shared = in_processes(
            open_work, files, parallelism.processes, at_once=parallelism.files, lost=lost
        )
        for index, result in shared:
            del left[index]
            yield index, result
    files_here = ahead(list(left.values()))
    if parallelism.threads == 1:
        results = in_growing_threads(work, files_here, parallelism.files, stop=stop)
    else:
        results = in_order(work, files_here, parallelism.files, room=len(left), stop=stop)
    yield from zip(left, results, strict=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
