"""Work in several threads, with the results in the order of the items.

Little is worked out ahead of the caller: memory does not grow with the number of items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

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
    """``work`` of every item, in the order of the items; at most ``workers`` + 1 are under way.

    A result that is ready before its turn waits.  ``size`` measures such results, and work on
    further items begins only while all of them together have at most ``room``.

    The first error in the order of the items ends the iteration, after the results before it.
    Items whose work has not begun by then are left out, and so they are when the caller closes the
    iterator.  In both cases ``stop`` is called before this waits for the work under way.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[Future[B]] = deque()
    failed: list[Exception] = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for item in _until_error(items, failed):
                pending.append(pool.submit(work, item))
                while pending and _is_due(pending, workers, size, room):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:
            for future in pending:
                future.cancel()
            stop()
            raise
    if failed:
        raise failed[0]


def _until_error(items: Iterable[A], failed: list[Exception]) -> Iterator[A]:
    """Yield the items up to an error, which goes into ``failed``."""
    try:
        yield from items
    except Exception as error:
        failed.append(error)


def _is_due(
    pending: Sequence[Future[B]], workers: int, size: Callable[[B], int], room: int
) -> bool:
    """Return whether the caller must take the first result before another item may begin.

    Blocks while all workers are busy and the first item is among those under way.
    """
    from concurrent.futures import FIRST_COMPLETED, wait

    under_way = [future for future in pending if not future.done()]
    while len(under_way) > workers and under_way[0] is pending[0]:
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        under_way = [future for future in under_way if future not in done]
    if not under_way or under_way[0] is not pending[0]:
        return True
    waiting = [future for future in pending if future not in under_way]
    return sum(size(it.result()) for it in waiting if it.exception() is None) > room
