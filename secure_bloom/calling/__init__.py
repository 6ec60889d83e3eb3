"""How public functions take arguments, and how packages offer their names.

- `arguments` checks each argument against its annotation, and raises PolicyError:

      @checked_arguments
      def probe(paths: Paths, column: str, ...) -> ProbeReport: ...

  and lets a function take one request, a dataclass, but be called with the request's fields
      (`takes`).
- `options` has the options of a filter, and checks of names that several rooms use.
- `lazy_names` imports the public names of a package when they are first used: a probe of one value
  must not wait for the writer's pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


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
