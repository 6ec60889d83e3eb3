"""Work in several threads, results in order, and never more in flight than is about to be used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(
    work: Callable[[A], B],
    items: Iterable[A],
    workers: int,
    *,
    size: Callable[[B], int] = lambda _: 1,
    room: int = 1,
) -> Generator[B, None, None]:
    """``work`` of every item, in the order of the items; at most ``workers`` + 1 are under way.

    Results that wait for one before them have a ``size``, of which there is ``room``.  The first
    error ends it, that of an item behind the results of those before; what was not begun then, or
    when the iterator is closed, is not done.
    """
    if workers <= 1:
        yield from map(work, items)
        return
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
        finally:
            for future in pending:
                future.cancel()
    if failed:
        raise failed[0]


def _until_error(items: Iterable[A], failed: list[Exception]) -> Iterator[A]:
    """The items up to an error, which is kept."""
    try:
        yield from items
    except Exception as error:
        failed.append(error)


def _is_due(
    pending: Sequence[Future[B]], workers: int, size: Callable[[B], int], room: int
) -> bool:
    """Whether the first is to be waited for; before that, wait until something may be begun."""
    under_way = [future for future in pending if not future.done()]
    while len(under_way) > workers and under_way[0] is pending[0]:
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        under_way = [future for future in under_way if future not in done]
    if not under_way or under_way[0] is not pending[0]:
        return True
    waiting = [future for future in pending if future not in under_way]
    return sum(size(it.result()) for it in waiting if it.exception() is None) > room
