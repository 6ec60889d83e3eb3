"""Send a value to the executors of one run. Each Python worker opens it once."""

from __future__ import annotations

import functools
import pickle
import threading
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def ship(value: object) -> bytes:
    """Return ``value`` as bytes for the tasks of one run.

    The bytes have an id of their own, so that the next run in the same Python worker opens its
    value again.  So keys that were unwrapped for one run are not used in another.
    """
    return pickle.dumps((value, uuid.uuid4().hex))


def opened_once(open_value: Callable[[Any], T]) -> Callable[[bytes], T]:
    """Return a function that opens the value in shipped bytes once per worker."""
    # Without the lock the first files of a task, which are at work together, would each open it.
    lock = threading.Lock()

    @functools.lru_cache(maxsize=1)
    def cached(shipped: bytes) -> T:
        value, _ = pickle.loads(shipped)  # noqa: S301 - the driver's own bytes
        return open_value(value)

    @functools.wraps(open_value)
    def opened(shipped: bytes) -> T:
        with lock:
            return cached(shipped)

    return opened
