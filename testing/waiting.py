"""Wait for what happens at its own time, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Far more than it takes where nothing else runs.
_SECONDS = 120


def eventually(happened: Callable[[], bool]) -> bool:
    """Return whether it happened, as soon as it did, or after two minutes without it."""
    ends = time.monotonic() + _SECONDS
    while not (found := happened()) and time.monotonic() < ends:
        time.sleep(0.01)
    return found
