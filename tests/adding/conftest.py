"""The bytes of ``add`` are the same with the C extension and without it."""

from __future__ import annotations

import pytest

from secure_bloom.kernels import extension


@pytest.fixture(params=[True, False], ids=["native", "numpy"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the tests of a module with the C extension, and with numpy in its place."""
    if not request.param:
        monkeypatch.setattr(extension, "native", None)
    elif extension.native is None:
        pytest.skip(f"runs on {extension.description}")
