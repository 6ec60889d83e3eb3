"""A KEK is unwrapped once, however many threads want it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from secure_bloom.encryption.keys.kek_cache import KekCache

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
