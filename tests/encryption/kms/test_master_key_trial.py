"""A master key serves if it wraps a key and gives the same one back."""

from __future__ import annotations

import base64

from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.kms.client import try_master_key
from secure_bloom.errors import KeyUnavailableError
from testing.tables import KEYRING


def test_a_key_that_wraps_and_unwraps_serves() -> None:
    assert try_master_key(KEYRING, "k_pii") is None


def test_a_key_that_is_not_there_is_told() -> None:
    failure = try_master_key(KEYRING, "nobody")
    assert isinstance(failure, KeyUnavailableError)
    assert "nobody" in str(failure)


def test_a_key_that_unwraps_to_something_else_does_not_serve() -> None:
    class Other:
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return base64.b64encode(key_bytes).decode()

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return bytes(16)

    assert try_master_key(Other(), "k") is not None


def test_a_master_key_that_the_kms_refuses_does_not_serve() -> None:
    class Disabled(Keyring):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            raise KeyUnavailableError("disabled")

    refused = try_master_key(Disabled(master_keys={"k_pii": bytes(16)}), "k_pii")
    assert refused is not None
    assert "disabled" in refused.message
