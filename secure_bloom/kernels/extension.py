"""Load the C extension, if it was built and ``SECURE_BLOOM_NATIVE=0`` is not set.

Callers read ``extension.native`` at each call and use numpy if it is None.
"""

from __future__ import annotations

import os
from typing import Any, Final

#: The variable that turns the extension off.
SWITCH: Final = "SECURE_BLOOM_NATIVE"


def _loaded() -> tuple[Any, str]:
    """Return the C module, or None, and a text that says which code runs."""
    if os.environ.get(SWITCH) == "0":
        return None, f"numpy ({SWITCH}=0)"
    try:
        from secure_bloom.kernels import _native  # type: ignore[attr-defined,unused-ignore]
    except ImportError as error:
        return None, f"numpy (the C extension was not built: {error.msg})"
    return _native, f"C extension ({_native.processor})"


#: The extension's module; None if numpy does its work.
native: Any
#: What ``secure-bloom --version -v`` prints.
description: str
native, description = _loaded()
