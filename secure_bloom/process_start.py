"""Settings of a process that is ours alone: most of a short run is its start and its end."""

from __future__ import annotations

import atexit
import gc
import os
from typing import Final

_OBJECTS: Final = 50_000


def settle_process() -> None:
    """To be called before anything large is imported."""
    # Imports make many objects and no garbage; to look for some takes a tenth of their time.
    gc.set_threshold(_OBJECTS, 10, 10)
    # At the end the interpreter would look for garbage among all that was imported.
    atexit.register(gc.freeze)
    # numpy's library of linear algebra, which nothing here calls, starts a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
