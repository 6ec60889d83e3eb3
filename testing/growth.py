"""How the work of a function grows with its input, counted in calls: no clock, no noise."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls of Python and C functions that ``work`` makes in this thread."""
    count = 0

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def growth(work: Callable[[int], object], size: int) -> float:
    """Return how many times as many calls an input of four times the size takes: 4 if linear."""
    work(size)
    return calls(lambda: work(4 * size)) / calls(lambda: work(size))
