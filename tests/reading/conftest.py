"""Every test of reading runs in both worlds: before compiled code is loaded, and after.

Rows, errors and plans are the same in both.  A test about one world alone says so with
``@pytest.mark.parametrize("has_compiled_code", [True])``, or with a ``pytestmark`` of that.
"""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", params=[False, True], ids=["interpreted", "compiled"])
def has_compiled_code(request: pytest.FixtureRequest) -> bool:
    """Whether compiled code counts as loaded."""
    return bool(request.param)
