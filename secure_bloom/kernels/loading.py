"""Decide when compiled code is worth loading, which takes half a second."""

from __future__ import annotations

import sys
from typing import Final

_LOADING: Final = 0.5


class CompiledCode:
    """Counts the seconds that compiled code would have saved this process so far.

    Several threads count without a lock, so the sum may miss what they add at the same moment.
    """

    def __init__(self) -> None:
        self._missed = 0.0

    def is_worth(self, saved: float) -> bool:
        """Whether to use compiled code, which would save ``saved`` seconds here.

        True once any part of the program has loaded it, or once the savings missed exceed the cost.
        """
        if "numba" in sys.modules:
            return True
        self._missed += saved
        return self._missed > _LOADING


#: The one of this process.
compiled_code = CompiledCode()
