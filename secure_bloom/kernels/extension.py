"""Load the C extension, if it was built and ``SECURE_BLOOM_NATIVE=0`` is not set.

In a clone an extension that was built from other C sources is not used, with a warning.

Callers read ``extension.native`` at each call and use numpy if it is None.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from secure_bloom.kernels.native_sources import sources_digest

#: The variable that turns the extension off.
SWITCH: Final = "SECURE_BLOOM_NATIVE"
_SOURCES: Final = Path(__file__).with_name("native")


def _loaded() -> tuple[Any, str]:
    """Return the C module, or None, and a text that says which code runs."""
    if os.environ.get(SWITCH) == "0":
        return None, f"numpy ({SWITCH}=0)"
    try:
        native = import_module("secure_bloom.kernels._native")
    except ModuleNotFoundError:
        if not Path(__file__).exists():
            return (
                None,
                "numpy (Python loads no C extension from a zip: install the package instead)",
            )
        return None, "numpy (the C extension was not built: install a C compiler, then reinstall)"
    except ImportError as error:
        return None, f"numpy (the C extension cannot be loaded: {error.msg})"
    clone = Path(__file__).parents[2]
    if (clone / "hatch_build.py").exists() and native.sources != sources_digest(_SOURCES):
        stale = "the C extension was built from other sources"
        warnings.warn(
            f"{stale}, so numpy is used: run python hatch_build.py in {clone}", stacklevel=3
        )
        return None, f"numpy ({stale}: run python hatch_build.py in {clone})"
    return native, f"C extension ({native.processor})"


#: The extension's module; None if numpy does its work.
native: Any
#: What ``secure-bloom --version -v`` prints.
description: str
native, description = _loaded()
