"""Work in several threads, and return the results in the order of the items.

Only a little is computed ahead of the caller, so memory does not grow with the number of items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

# Loaded with the first threads: one file needs none.
if TYPE_CHECKING:
    from concurrent.futures import Future

#: Small files that a process has at work: while some wait for the disk, another one computes, and a
#: disk syncs several together.
AT_ONCE: Final = 8
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
        self.queue: deque[Future[B]] = deque()
        self._under_way: list[Future[B]] = []
        self._sizes: dict[Future[B], int] = {}
        self._waiting = 0
        self._workers, self._size, self._room = workers, size, room

    def append(self, future: Future[B]) -> None:
        """Add work that was just submitted."""
        self.queue.append(future)
        self._under_way.append(future)

    def is_due(self) -> bool:
        """Return whether the caller must take the first result before another item may begin.

        Blocks while all workers are busy and the first item is in progress.
        """
        from concurrent.futures import FIRST_COMPLETED, wait

        self._measure()
        while len(self._under_way) > self._workers and self._is_first_under_way():
            wait(self._under_way, return_when=FIRST_COMPLETED)
            self._measure()
        return bool(self.queue) and (not self._is_first_under_way() or self._waiting > self._room)

    def first(self) -> B:
        """Wait for the first result and return it."""
        future = self.queue.popleft()
        self._waiting -= self._sizes.pop(future, 0)
        if self._under_way and self._under_way[0] is future:
            del self._under_way[0]
        return future.result()

    def _is_first_under_way(self) -> bool:
        return bool(self._under_way) and self._under_way[0] is self.queue[0]

    def _measure(self) -> None:
        done = [future for future in self._under_way if future.done()]
        for future in done:
            self._sizes[future] = 0 if future.exception() else self._size(future.result())
            self._waiting += self._sizes[future]
        if done:
            self._under_way = [future for future in self._under_way if future not in self._sizes]
