"""The words of [kms] for Vault, and what the environment adds to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from secure_bloom.encryption.kms import kms_client
from secure_bloom.errors import (
    PolicyError,
)
from testing.http_servers import DEK
from testing.openbao import OpenBao


def test_http_to_another_machine_is_refused_unless_said_so() -> None:
    table = {"client": "vault", "address": "http://vault.example.com:8200"}
    with pytest.raises(PolicyError, match=r"http://vault\.example\.com:8200: without TLS"):
        kms_client(table, Path())
    assert kms_client({**table, "allow_http": True}, Path())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "names no address"),
        ({"address": "vault:8200"}, "is not a URL"),
        ({"address": "https://u:pw@vault"}, "holds more than"),
        ({"address": "https://vault:99999"}, "is not a URL"),
        ({"address": "https://v", "token": "hvs.x"}, "unknown option 'token'"),
        ({"address": "https://v", "auth": "aprole"}, "it must be one of"),
        ({"address": "https://v", "role": "r"}, "'role' of [kms] cannot be combined with auth"),
        ({"address": "https://v", "auth": "kubernetes"}, "names no role"),
        ({"address": "https://v", "mount": "../x"}, "not the path of a mount"),
        ({"address": "https://v", "allow_http": "yes"}, "it must be true or false"),
        ({"address": "https://v", "retry_seconds": -1}, "is negative"),
        ({"address": "https://v", "adress": "https://v"}, "unknown option 'adress'"),
    ],
)
def test_words_that_make_no_sense(words: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        kms_client({"client": "vault", **words}, Path())
    text = f"{caught.value} {caught.value.hint}"
    assert message in text
    assert "hvs.x" not in text
    assert "pw" not in text


def test_what_is_not_given_comes_from_the_environment(
    root: OpenBao, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAO_ADDR", root.address)
    client = kms_client({"client": "vault"}, Path())
    assert client.wrap_key(DEK, root.make_key("env")).startswith("vault:v1:")
