"""What the driver gives to the tasks of one call: values that each worker opens once, and settings.

    @with_shared_storage
    def audit(spark, paths, ..., storage_options=None): ...

``storage_options`` of a call say where the store is, for the driver and for each task.  Tasks get
the settings of the call that starts them (``tasks``), never a credential.
"""

from __future__ import annotations

import functools
import pickle
import threading
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from secure_bloom.storage.paths import as_paths
from secure_bloom.storage.store_grants import StoreGrant

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


P = ParamSpec("P")
R = TypeVar("R")

_of_call: Final[ContextVar[StoreGrant | None]] = ContextVar("grant of a call", default=None)


def call_grant() -> StoreGrant | None:
    """Return the right to a store that the running call was given, or None."""
    return _of_call.get()


def with_shared_storage(verb: Callable[P, R]) -> Callable[P, R]:
    """Make a verb, whose arguments begin with a session and paths, honour ``storage_options``."""

    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = kwargs
        options = given.get("storage_options")
        if options is None:
            return verb(*args, **kwargs)
        # Imported here: a worker imports this module, and finds no tables.
        from secure_bloom.spark.table_names import table_location
        from secure_bloom.storage.storage_options import shared_grant

        first: list[Any] = list(args)
        name = next((it for it in ("files", "table") if it in given), "paths")
        spark = first[0] if first else given.get("spark")
        paths: Any = first[1] if len(first) > 1 else given.get(name, ())
        if not isinstance(paths, str):
            # Listed once: the paths may come from a generator.
            paths = as_paths(paths)
        if len(first) > 1:
            first[1] = paths
        else:
            given[name] = paths
        grant = shared_grant([table_location(spark, path) for path in as_paths(paths)], options)
        token = _of_call.set(grant)
        try:
            return verb(*first, **given)
        finally:
            _of_call.reset(token)

    return call
