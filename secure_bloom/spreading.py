"""Spread the files of a run: over processes if there are many, else over threads.

The work on a small file is mostly Python, and threads do that in turns.  A large file is read,
decoded and hashed in compiled code, which threads do side by side; and a process takes a quarter of
a second to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from secure_bloom.errors import PolicyError, WorkerLostError
from secure_bloom.ordered_pool import AT_ONCE, TINY, in_order
from secure_bloom.storage.paths import files_at_once, is_object_uri, local_path

A = TypeVar("A")
B = TypeVar("B")

#: Files for each process: fewer are done before another process is ready.
_FILES_A_PROCESS: Final = 128
#: Larger files, in the mean of some, are work for threads.
_SMALL: Final = 16 * 1024 * 1024
_SAMPLE: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The number of processes that share the files of a run; for one, also that of its threads.

    Each process works on ``files`` files at once.  If each file mostly waits for a disk or a store,
    there are more of them than threads that compute.
    """

    processes: int
    threads: int
    files: int


def chosen_spread(paths: Sequence[str], jobs: int | None, *, by_threads: bool = False) -> Spread:
    """Return the way for these files, with ``jobs`` cores.

    By default all that this process may use.
    ``by_threads`` is for work whose threads share what is far away, such as the answers of a KMS.
    PolicyError for no job at all.
    """
    if jobs is not None and jobs < 1:
        raise PolicyError(f"jobs is {jobs}, it must be at least 1")
    threads = _cores() if jobs is None else jobs
    # Whoever names a number of jobs need not have many files, only enough to share.
    processes = min(threads, len(paths) // (_FILES_A_PROCESS if jobs is None else 2))
    size = _mean_size(paths)
    if by_threads or size is None or size > _SMALL:
        files = files_at_once(paths)
        # One chunk of an object is on its way while another one is decoded.
        threads = threads if files == 1 else 2 * threads
        return Spread(processes=1, threads=threads, files=max(threads, files))
    threads = 1 if size <= TINY else threads
    return Spread(processes=max(1, processes), threads=threads, files=AT_ONCE)


def each_file(
    work: Callable[[A], B],
    open_work: Callable[[], Callable[[A], B]],
    files: Sequence[A],
    spread: Spread,
    *,
    lost: Callable[[A, WorkerLostError], B],
    stop: Callable[[], None] = lambda: None,
    ahead: Callable[[Sequence[A]], Iterable[A]] = iter,
) -> Generator[tuple[int, B], None, None]:
    """Yield the index of each file and what ``work`` says of it, as it is done.

    ``open_work`` opens the same work in another process, to which it is pickled.  If processes
    cannot do the work, threads of this process do it, on the files as ``ahead`` gives them.  Then
    ``stop`` is called if the caller ends early.  ``lost`` says of a file that the process which
    worked on it died.
    """
    left = dict(enumerate(files))
    if spread.processes > 1:
        # Not needed, and so not loaded, where one process does it all.
        from secure_bloom.worker_processes import in_processes

        shared = in_processes(open_work, files, spread.processes, at_once=spread.files, lost=lost)
        for index, result in shared:
            del left[index]
            yield index, result
    files_here = ahead(list(left.values()))
    results = in_order(work, files_here, spread.files, room=len(left), stop=stop)
    yield from zip(left, results, strict=True)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _mean_size(paths: Sequence[str]) -> int | None:
    """Return the mean size of a sample of the files; None for objects."""
    some = paths[:: max(1, len(paths) // _SAMPLE)]
    # Objects are waited for, whatever their size is.
    if any(map(is_object_uri, some)):
        return None
    sizes = []
    for path in some:
        with suppress(OSError):
            sizes.append(Path(local_path(path)).stat().st_size)
    return sum(sizes) // max(1, len(some))
