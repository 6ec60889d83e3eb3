"""Collect the distinct numbers of many arrays in ascending order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Numbers that wait, at least, before they are sorted together with those that are known.
_GATHERED: Final = 1 << 21


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct numbers in ascending order.

    For many numbers np.unique takes ten times as long, and ever longer beyond the caches.
    """
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


class DistinctNumbers:
    """Collects the distinct numbers of arrays. Each number is sorted only a few times.

    If there are more than ``most`` distinct numbers, the smallest ``most`` of them are kept.
    """

    def __init__(self, kind: type[np.generic], most: int | None = None) -> None:
        self._kind, self._most = kind, most
        self._gathered: list[NDArray[Any]] = []
        self._waiting = self._known = 0

    def add(self, numbers: NDArray[Any]) -> None:
        """Take the numbers of an array."""
        self._gathered.append(numbers)
        self._waiting += len(numbers)
        # At least as many as are distinct already, so that the known ones are sorted rarely.
        if self._waiting > max(_GATHERED, self._known):
            self.found()

    def found(self) -> NDArray[Any]:
        """Return the distinct numbers in ascending order."""
        if self._waiting or len(self._gathered) != 1:
            whole = distinct(np.concatenate([*self._gathered, np.empty(0, self._kind)]))
            self._gathered = [whole[: self._most]]
            self._waiting, self._known = 0, len(self._gathered[0])
        return self._gathered[0]
