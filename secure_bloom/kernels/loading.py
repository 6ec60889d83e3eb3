"""Decide when compiled code is worth loading: for little data it takes longer than it saves."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Final

# numba and its kernels take 0.4 s, loops that are kept as machine code 0.04 s.  Between the other
# steps of a file a loop costs 1.4 times what it costs by itself, as the savings were measured,
# because the caches are cold.
_NUMBA: Final = 0.3
_KEPT: Final = 0.03


class CompiledCode:
    """Counts the seconds that compiled code would have saved this process so far.

    ``least`` and ``loading`` are the seconds that loading takes: at least, and in truth, which is
    looked up when the least was missed.  Several threads count without a lock, so the sum may miss
    what they add at the same moment.
    """

    def __init__(
        self, is_loaded: Callable[[], bool], least: float, loading: Callable[[], float]
    ) -> None:
        self._is_loaded = is_loaded
        self._least = least
        self._loading = functools.cache(loading)
        self._missed = 0.0
        self._is_wanted = False

    def is_worth(self, saved: float) -> bool:
        """Whether to use compiled code, which would save ``saved`` seconds here.

        True once any part of the program has loaded it, or once the savings missed exceed the cost,
        or will, by what was foreseen.
        """
        if self._is_wanted or self._is_loaded():
            return True
        self._missed += saved
        self._is_wanted = self._pays(self._missed)
        return self._is_wanted

    def expect(self, saved: float) -> None:
        """Count on work to come, in which compiled code would save so many seconds.

        Whoever knows that can load compiled code before half of its worth is missed.
        """
        self._is_wanted |= self._pays(self._missed + saved)

    def foresee(self, times: float) -> None:
        """Count on so many times the work that was done so far, which is a sample."""
        self.expect(self._missed * times)

    def _pays(self, saved: float) -> bool:
        return saved > self._least and saved > self._loading()


def _is_numba_loaded() -> bool:
    return "numba" in sys.modules


#: Everything that numba compiles, in this process.
compiled_code = CompiledCode(_is_numba_loaded, _NUMBA, lambda: _NUMBA)
