"""Decide when compiled code is worth loading, which takes almost half a second."""

from __future__ import annotations

import sys
from typing import Final

# Loading takes 0.4 s.  Between the other steps of a file a loop costs 1.4 times what it costs by
# itself, as the savings were measured, because the caches are cold.
_LOADING: Final = 0.3


class CompiledCode:
    """Counts the seconds that compiled code would have saved this process so far.

    Several threads count without a lock, so the sum may miss what they add at the same moment.
    """

    def __init__(self) -> None:
        self._missed = 0.0
        self._is_wanted = False

    def is_worth(self, saved: float) -> bool:
        """Whether to use compiled code, which would save ``saved`` seconds here.

        True once any part of the program has loaded it, or once the savings missed exceed the cost,
        or will, by what was foreseen.
        """
        if "numba" in sys.modules:
            return True
        self._missed += saved
        return self._is_wanted or self._missed > _LOADING

    def expect(self, saved: float) -> None:
        """Count on work to come, in which compiled code would save so many seconds.

        Whoever knows that can load compiled code before half of its worth is missed.
        """
        self._is_wanted |= self._missed + saved > _LOADING

    def foresee(self, times: float) -> None:
        """Count on so many times the work that was done so far, which is a sample."""
        self.expect(self._missed * times)


#: The one of this process.
compiled_code = CompiledCode()
