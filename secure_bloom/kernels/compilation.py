"""How a kernel is compiled: on its first call, without the GIL, kept on disk where that is allowed.

Overflow wraps and indices are not checked inside a kernel: its caller checks the arrays before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` when it is first called with a new set of argument types.

    numba keeps the machine code in ``NUMBA_CACHE_DIR``, beside the source file or in the user's
    cache folder.  Where none of them can be written, every process compiles for itself.
    """
    try:
        compiled = njit(nogil=True, cache=True)(function)
    except RuntimeError:  # "cannot cache function ...: no locator available"
        compiled = njit(nogil=True)(function)
    return cast(Callable[P, R], compiled)
