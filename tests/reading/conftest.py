"""Every test of reading runs both ways: without the C extension, and with it.

Rows, errors and plans are the same.  Of a test with several cases `make test` runs each case one
way, in turns.  A test about one way alone has the mark
``@pytest.mark.parametrize("has_extension", [True])``, or with a ``pytestmark`` of that.
"""

from __future__ import annotations

import pytest

from secure_bloom.kernels import extension


@pytest.fixture(scope="module", params=[False, True], ids=["numpy", "native"])
def has_extension(request: pytest.FixtureRequest) -> bool:
    """Whether the C extension is used."""
    return bool(request.param)


@pytest.fixture(autouse=True)
def _extension(monkeypatch: pytest.MonkeyPatch, has_extension: bool) -> None:
    if not has_extension:
        monkeypatch.setattr(extension, "native", None)
    elif extension.native is None:
        pytest.skip(f"runs on {extension.description}")
