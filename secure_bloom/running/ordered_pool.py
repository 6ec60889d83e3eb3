"""Work in several threads, and return the results in the order of the items.

Only a little is computed ahead of the caller, so memory does not grow with the number of items.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

# Loaded with the first threads: one file needs none.
if TYPE_CHECKING:
    from concurrent.futures import Future
    from queue import SimpleQueue

#: Most small files that a process has at work: while some wait for the disk, another one computes,
#: and a disk syncs several together.
AT_ONCE: Final = 8
#: Seconds over which a process is observed before it gets more threads.
_WINDOW: Final = 0.02
#: A process mostly waits if it computes for less than this part of the time.
_BUSY: Final = 0.85
#: Bytes of a file: the work on smaller ones is loops so short that threads mostly hand Python's
#: lock to each other.
TINY: Final = 256 * 1024

A = TypeVar("A")
B = TypeVar("B")


def in_order(
    work: Callable[[A], B],
    items: Iterable[A],
    workers: int,
    *,
    size: Callable[[B], int] = lambda _: 1,
    room: int = 1,
    stop: Callable[[], None] = lambda: None,
) -> Generator[B, None, None]:
    """Yield ``work(item)`` of every item, in order. At most ``workers`` + 1 items are in progress.

    A result that is ready before its turn waits.  ``size`` measures waiting results, and work on
    further items begins only while all of them together have at most ``room``.

    The first error in the order of the items ends the iteration, after the results before it. Items
    that have not begun by then are left out. The same holds when the caller closes the iterator. In
    both cases ``stop`` is called before this function waits for the items in progress.
    """
    items = iter(items)
    # Looked at before there are threads: most questions to an open table leave nothing to do.
    begun = [] if workers <= 1 else list(islice(items, 1))
    if not begun:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    pending, failed = _Pending(workers, size, room), list[Exception]()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for item in _until_error(chain(begun, items), failed):
                pending.append(pool.submit(work, item))
                while pending.is_due():
                    yield pending.first()
            while pending.queue:
                yield pending.first()
        except BaseException:
            for future in pending.queue:
                future.cancel()
            stop()
            raise
    if failed:
        raise failed[0]


def _until_error(items: Iterable[A], failed: list[Exception]) -> Iterator[A]:
    """Yield the items up to an error, which is added to ``failed``."""
    try:
        yield from items
    except Exception as error:
        failed.append(error)


class _Pending(Generic[B]):
    """The results that the caller has not taken yet, in order.

    The size of each result is computed once, when it is done, because thousands may wait.
    """

    def __init__(self, workers: int, size: Callable[[B], int], room: int) -> None:
        from queue import SimpleQueue

        self.queue: deque[Future[B]] = deque()
        #: Futures that are done and not measured yet. Threads put them there.
        self._done: SimpleQueue[Future[B]] = SimpleQueue()
        self._sizes: dict[Future[B], int] = {}
        self._under_way = self._waiting = 0
        self._workers, self._size, self._room = workers, size, room

    def append(self, future: Future[B]) -> None:
        """Add work that was just submitted."""
        self.queue.append(future)
        self._under_way += 1
        future.add_done_callback(self._done.put)

    def is_due(self) -> bool:
        """Return whether the caller must take the first result before another item may begin.

        Blocks while all workers are busy and the first item is in progress.
        """
        while not self._done.empty():
            self._measure()
        while self._under_way > self._workers and self.queue[0] not in self._sizes:
            self._measure()
        return bool(self.queue) and (self.queue[0] in self._sizes or self._waiting > self._room)

    def first(self) -> B:
        """Wait for the first result and return it."""
        while self.queue[0] not in self._sizes:
            self._measure()
        future = self.queue.popleft()
        self._waiting -= self._sizes.pop(future)
        return future.result()

    def _measure(self) -> None:
        """Wait for the next result that is done, in any order, and measure it."""
        future = self._done.get()
        self._under_way -= 1
        self._sizes[future] = 0 if future.exception() else self._size(future.result())
        self._waiting += self._sizes[future]


def in_growing_threads(
    work: Callable[[A], B],
    items: Iterable[A],
    most: int,
    *,
    stop: Callable[[], None] = lambda: None,
    grown: Callable[[], None] = lambda: None,
) -> Generator[B, None, None]:
    """Yield ``work(item)`` of every item, in order, with more threads if the work mostly waits.

    Python threads that compute hand their lock over at each system call, which more than doubles
    the work on a small file. So a second thread starts only if the process waits, for a disk or a
    KMS, and there are at most ``most`` threads. ``grown`` is called before a thread starts.

    The first error in the order of the items ends the iteration, after the results before it.
    Items that have not begun by then are left out. The same holds when the caller closes the
    iterator. In both cases ``stop`` is called before this function waits for the items in
    progress.
    """
    team = _Team(work, items)
    try:
        grown()
        team.start()
        while team.is_at_work:
            team.wait()
            yield from team.news()
            if len(team.threads) < most and team.mostly_waits():
                grown()
                team.start()
        yield from team.news()
    except BaseException:
        team.is_stopped = True
        stop()
        raise
    finally:
        team.join()


class _Team(Generic[A, B]):
    """Threads that each take one item after another. A result waits here for its turn."""

    def __init__(self, work: Callable[[A], B], items: Iterable[A]) -> None:
        self.threads: list[threading.Thread] = []
        self.is_stopped = False
        self._work, self._items = work, iter(items)
        #: Held while a thread takes an item, for which it may wait.
        self._taking = threading.Lock()
        self._taken = self._given = self._active = 0
        self._done: dict[int, B] = {}
        self._failed: dict[int, BaseException] = {}
        #: A thread has ended.
        self._ended = threading.Event()
        self._clocks = time.perf_counter(), time.process_time()

    @property
    def is_at_work(self) -> bool:
        """Whether results are still to come."""
        return self._active > 0

    def start(self) -> None:
        """Start one more thread."""
        thread = threading.Thread(target=self._take_and_work)
        self.threads.append(thread)
        self._active += 1
        thread.start()

    def join(self) -> None:
        """Wait until all threads have ended."""
        for thread in self.threads:
            thread.join()

    def wait(self) -> None:
        """Wait until a thread has ended, or until a short time has passed."""
        # Woken for each result, the caller would take Python's lock from the thread at work.
        self._ended.wait(_WINDOW)
        self._ended.clear()

    def news(self) -> Iterator[B]:
        """Yield the results whose turn it is. Raise the next result if it is an error."""
        while self._given in self._done:
            yield self._done.pop(self._given)
            self._given += 1
        if self._given in self._failed:
            raise self._failed[self._given]

    def mostly_waits(self) -> bool:
        """Return whether all threads are busy, but used little CPU time of late."""
        (since, computed), now = self._clocks, (time.perf_counter(), time.process_time())
        if now[0] - since < _WINDOW:
            return False
        self._clocks = now
        return not self._taking.locked() and now[1] - computed < _BUSY * (now[0] - since)

    def _take_and_work(self) -> None:
        index = 0
        try:
            while not self.is_stopped:
                with self._taking:
                    index = self._taken
                    self._taken += 1
                    item = next(self._items)
                self._done[index] = self._work(item)
        except StopIteration:
            pass
        except BaseException as error:
            self.is_stopped = True
            self._failed[index] = error
        with self._taking:
            self._active -= 1
        self._ended.set()
