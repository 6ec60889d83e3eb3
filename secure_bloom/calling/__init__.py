"""How public functions take arguments, how packages offer their names, and what is made once.

- `arguments` checks each argument against its annotation, and raises PolicyError:

      @checked_arguments
      def probe(paths: Paths, column: str, ...) -> ProbeReport: ...

  and lets a function take one request, a dataclass, but be called with the request's fields
      (`takes`).
- `options` has the options of a filter, and checks of names that several rooms use.
- `close_names` finds the known name that a misspelt one means.
- `lazy_names` imports the public names of a package when they are first used: a probe of one value
  must not wait for the writer's pyarrow.
- `made_once` keeps the results of a function, such as clients of a store, for all threads.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package (PEP 562).

    ``homes`` maps a module of the package to the public names in it.  A module that is public
    itself has no names.
    """
    module_of = {name: module for module, names in homes.items() for name in names or [module]}

    def getattr_(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{module_of[name]}")
        return getattr(module, name) if name in homes[module_of[name]] else module

    def dir_() -> list[str]:
        return sorted(module_of)

    return getattr_, dir_


def made_once(make: Callable[P, R]) -> Callable[P, R]:
    """Return ``make`` so that its last 16 results are kept. Arguments must be hashable.

    Threads that ask for the same result at once get one result. ``functools.lru_cache`` alone lets
    each of them make its own.
    """
    kept = functools.lru_cache(maxsize=16)(make)
    locks = [threading.Lock()]

    @functools.wraps(make)
    def get(*args: P.args, **options: P.kwargs) -> R:
        with locks[0]:
            return kept(*args, **options)  # type: ignore[arg-type]

    # A forked process inherits a lock as it is, even if a thread that it lacks holds it.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: locks.__setitem__(0, threading.Lock()))
    return get
