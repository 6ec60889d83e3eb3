"""Data keys wrapped once and twice come back, and only under the keys that they were wrapped by."""

from __future__ import annotations

import base64
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from secure_bloom.encryption.file_keys import UnwrapsOnce, wrapping
from secure_bloom.encryption.file_keys.wrapping import (
    KekCache,
    KeyEncryptionKey,
    unwrap,
    wrap_once,
    wrap_twice,
)
from secure_bloom.errors import FormatError, KeyUnavailableError
from testing.tables import KEYRING, MASTER_KEYS, CountingKms

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


ID = (b"kek", "k_pii", "wrapped")


def test_threads_that_want_one_kek_wait_for_one_call() -> None:
    cache, calls, barrier = KekCache(), [], threading.Barrier(8)

    def unwrap() -> bytes:
        calls.append(None)
        return b"key"

    def want(_: int) -> bytes:
        barrier.wait()
        return cache.get(ID, unwrap)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(want, range(8))) == {b"key"}
    assert len(calls) == cache.unwrapped == 1


def test_an_id_alone_does_not_make_two_keks_one() -> None:
    cache = KekCache()
    assert cache.get((b"kek", "k_pii", "wrapped"), lambda: b"one") == b"one"
    assert cache.get((b"kek", "k_pii", "other"), lambda: b"two") == b"two"
    assert cache.get((b"kek", "k_other", "wrapped"), lambda: b"three") == b"three"


def test_what_failed_is_tried_again() -> None:
    cache = KekCache()

    def refuse() -> bytes:
        raise LookupError

    with pytest.raises(LookupError):
        cache.get(ID, refuse)
    assert cache.get(ID, lambda: b"key") == b"key"
    assert cache.unwrapped == 1


def test_each_key_is_asked_for_once() -> None:
    kms = CountingKms()
    once = UnwrapsOnce(kms)
    keys = [bytes([i]) * 16 for i in range(3)]
    wrapped = [once.wrap_key(key, "k_pii") for key in keys]
    for _ in range(2):
        assert [once.unwrap_key(text, "k_pii") for text in wrapped] == keys
    assert kms.asked == [(text, "k_pii") for text in wrapped]


def test_what_the_other_client_has() -> None:
    assert [UnwrapsOnce(KEYRING).has_key(name) for name in (*MASTER_KEYS, "other")] == [
        *[True] * len(MASTER_KEYS),
        False,
    ]
    assert UnwrapsOnce(CountingKms()).has_key("any")


def test_the_oldest_kek_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapping, "_MOST", 2)
    cache = KekCache()
    for name in ("a", "b", "c", "b", "a"):
        assert cache.get((b"kek", "k", name), name.encode) == name.encode()
    assert cache.unwrapped == 4
