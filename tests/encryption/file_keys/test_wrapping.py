"""Data keys wrapped once and twice come back, and only under the keys that they were wrapped by."""

from __future__ import annotations

import base64
import dataclasses

import pytest

from secure_bloom.encryption.file_keys.unwrapped_keys import KekCache
from secure_bloom.encryption.file_keys.wrapping import (
    KeyEncryptionKey,
    unwrap,
    wrap_once,
    wrap_twice,
)
from secure_bloom.errors import FormatError, KeyUnavailableError
from testing.tables import KEYRING, CountingKms

DEK = b"data-key-16bytes"


@pytest.mark.parametrize("is_footer_key", [False, True])
def test_a_key_that_is_wrapped_once_costs_a_call_each_time(is_footer_key: bool) -> None:
    kms = CountingKms()
    material = wrap_once(DEK, kms, "k_pii", is_footer_key=is_footer_key)
    assert material.kek is None
    assert material.is_footer_key is is_footer_key
    assert unwrap(material, kms, KekCache()) == DEK
    assert len(kms.asked) == 1


def test_keys_that_are_wrapped_twice_share_one_call() -> None:
    kms, keks = CountingKms(), KekCache()
    kek = KeyEncryptionKey.create(kms, "k_pii")
    materials = [wrap_twice(dek, kek) for dek in (DEK, DEK[::-1], DEK * 2)]
    assert [unwrap(material, kms, keks) for material in materials] == [DEK, DEK[::-1], DEK * 2]
    assert len(kms.asked) == 1
    assert repr(kek.key) not in repr(kek)


def test_a_key_under_another_kek_does_not_fit() -> None:
    ours, other = (KeyEncryptionKey.create(KEYRING, "k_pii") for _ in range(2))
    exchanged = dataclasses.replace(wrap_twice(DEK, ours), kek=other.wrapped)
    with pytest.raises(KeyUnavailableError, match="k_pii"):
        unwrap(exchanged, KEYRING, KekCache())


def test_what_is_no_wrapped_key_is_malformed() -> None:
    material = wrap_twice(DEK, KeyEncryptionKey.create(KEYRING, "k_pii"))
    with pytest.raises(FormatError, match="base64"):
        unwrap(dataclasses.replace(material, wrapped_dek="*"), KEYRING, KekCache())
    short = base64.b64encode(b"too short").decode()
    with pytest.raises((FormatError, KeyUnavailableError)):
        unwrap(dataclasses.replace(material, wrapped_dek=short), KEYRING, KekCache())
