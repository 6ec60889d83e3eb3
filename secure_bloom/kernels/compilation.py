"""How a kernel is compiled: on its first call, kept on disk where that is allowed.

Overflow wraps and indices are not checked inside a kernel: its caller checks the arrays before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit

#: Makes an int64 of any number.  The type checker sees an int, so kernels need no casts.
I64 = cast(Callable[[object], int], np.int64)

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` when it is first called with a new set of argument types.

    numba keeps the machine code in ``NUMBA_CACHE_DIR``, beside the source file or in the user's
    cache folder.  Where none of them can be written, every process compiles for itself.
    """
    return _compiled(function, nogil=True)


def brief_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`kernel`, for loops so short that to release the GIL would take longer."""
    return _compiled(function, nogil=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """As :func:`kernel`, inlined into its callers: for functions that are faster than a call."""
    return _compiled(function, nogil=True, forceinline=True)


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function ...: no locator available"
        compiled = njit(**options)(function)
    return cast(Callable[P, R], compiled)
