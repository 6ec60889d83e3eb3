"""Every test of reading runs in both worlds: without compiled code, and with it.

Rows, errors and plans are the same in both.  A test about one world alone says so with
``@pytest.mark.parametrize("has_compiled_code", [True])``, or with a ``pytestmark`` of that.
"""

from __future__ import annotations

import pytest

from secure_bloom.kernels import extension


@pytest.fixture(scope="module", params=[False, True], ids=["interpreted", "compiled"])
def has_compiled_code(request: pytest.FixtureRequest) -> bool:
    """Whether compiled code counts as loaded."""
    return bool(request.param)


@pytest.fixture(autouse=True)
def _extension(monkeypatch: pytest.MonkeyPatch, has_compiled_code: bool) -> None:
    if not has_compiled_code:
        monkeypatch.setattr(extension, "native", None)
    elif extension.native is None:
        pytest.skip(f"runs on {extension.description}")
