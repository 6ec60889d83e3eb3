"""Settings of a process that runs only this program.  Most of a short run is its start and end."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final

_OBJECTS: Final = 50_000


def settle_process() -> None:
    """To be called before anything large is imported."""
    _open_closed_streams()
    # Imports make many objects and no garbage; to look for some takes a tenth of their time.
    gc.set_threshold(_OBJECTS, 10, 10)
    # At the end the interpreter would look for garbage among all that was imported.
    atexit.register(gc.freeze)
    # numpy's library of linear algebra, which nothing here calls, starts a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _open_closed_streams() -> None:
    """Standard streams that the caller has closed lead to the null device."""
    # The lowest free number is taken, so in this order each stream gets its own.  Left free, it
    # would go to the next file that is opened, and what libraries print would be written into that.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            stream = os.fdopen(number, mode, encoding="utf-8", errors="backslashreplace")
            setattr(sys, name, stream)
