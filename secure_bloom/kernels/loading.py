"""Whether compiled code is worth its loading, which takes half a second."""

from __future__ import annotations

import sys
from typing import Final

_LOADING: Final = 0.5


class CompiledCode:
    """How much time compiled code would have saved this process so far, in seconds.

    The count is that of several threads, and may be off by what they do at the same time.
    """

    def __init__(self) -> None:
        self._missed = 0.0

    def is_worth(self, saved: float) -> bool:
        """Whether to use compiled code, which would save so many seconds more.

        Once it is loaded, by anyone, it is.
        """
        if "numba" in sys.modules:
            return True
        self._missed += saved
        return self._missed > _LOADING


#: That of this process.
compiled_code = CompiledCode()
