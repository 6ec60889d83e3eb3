"""The token of the test server in the environment."""

from __future__ import annotations

import pytest

from testing.openbao import OpenBao


@pytest.fixture
def root(openbao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> OpenBao:
    """The server, whose root token is in the environment."""
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    return openbao
