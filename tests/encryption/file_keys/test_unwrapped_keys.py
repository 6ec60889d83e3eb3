"""Each key is unwrapped once, by whichever thread wants it first."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from secure_bloom.encryption.file_keys import UnwrapsOnce, unwrapped_keys
from secure_bloom.encryption.file_keys.unwrapped_keys import KekCache
from testing.tables import KEYRING, MASTER_KEYS, CountingKms

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
    monkeypatch.setattr(unwrapped_keys, "_MOST", 2)
    cache = KekCache()
    for name in ("a", "b", "c", "b", "a"):
        assert cache.get((b"kek", "k", name), name.encode) == name.encode()
    assert cache.unwrapped == 4
