"""Work in several threads, results in order, and never more in flight than is about to be used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def in_order(work: Callable[[A], B], items: Iterable[A], workers: int) -> Generator[B, None, None]:
    """``work`` of every item, in the order of the items; at most ``workers`` + 1 are under way.

    The first error ends it; what was not begun then, or when the iterator is closed, is not done.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    pending: deque[Future[B]] = deque()
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
