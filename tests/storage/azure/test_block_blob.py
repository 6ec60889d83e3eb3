"""Blobs of Azure: only new bytes are uploaded, and no update of another program is lost."""

from __future__ import annotations

from functools import partial

import pytest

from secure_bloom.storage import azure_blobs as azure
from testing.store_proxy import store_proxy
from tests.storage.azure.conftest import Blobs
from tests.storage.other_stores import (
    KEY,
    LARGE,
    SMALL,
    StoreTests,
    failing_writes,
    new,
    replaced,
)


class TestAzure(StoreTests):
    """The tests of every store."""

    # Key material goes up before data.
    late, late_number = "x-ms-blob-type", 1


def test_only_the_tail_goes_up(container: Blobs) -> None:
    with store_proxy(container.port) as proxy:
        behind = Blobs(proxy.port)
        behind.put(KEY, LARGE)
        proxy.counts()
        replaced(behind)
        counts = proxy.counts()
        assert behind.objects() == {KEY: new(LARGE)}
    assert counts.bytes_up < 2000
    assert counts.bytes_down < 10_000
    # Two to open it, properties, tags, a copy, the tail, properties, the list of blocks.
    assert counts.requests <= 8


@pytest.mark.parametrize(
    ("old", "from_then_on", "after"),
    [
        pytest.param(LARGE, False, False, id="once", marks=pytest.mark.slow),
        pytest.param(LARGE, False, True, id="answer-lost"),
        pytest.param(LARGE, True, False, id="from-then-on", marks=pytest.mark.slow),
        pytest.param(LARGE, True, True, id="answers-lost-from-then-on", marks=pytest.mark.slow),
        pytest.param(SMALL, False, False, id="small", marks=pytest.mark.slow),
        pytest.param(SMALL, False, True, id="small-answer-lost", marks=pytest.mark.slow),
        pytest.param(SMALL, True, False, id="small-from-then-on", marks=pytest.mark.slow),
    ],
)
def test_a_request_that_fails_leaves_the_old_blob_or_the_new_one(
    container: Blobs,
    monkeypatch: pytest.MonkeyPatch,
    old: bytes,
    from_then_on: bool,
    after: bool,
) -> None:
    at_once = {"initial_backoff": 0, "increment_base": 0, "random_jitter_range": 0}
    monkeypatch.setattr(azure, "_RETRIES", partial(azure._RETRIES, **at_once))
    with store_proxy(container.port) as proxy:
        failing_writes(Blobs(proxy.port), proxy, old, from_then_on=from_then_on, after=after)


def test_where_the_store_does_not_copy_all_bytes_go_up(container: Blobs) -> None:
    with store_proxy(container.port) as proxy:
        behind = Blobs(proxy.port)
        behind.put(KEY, LARGE)
        proxy.counts()
        copies = "x-ms-copy-source:"
        proxy.tell(fail={"from_then_on": True, "status": 403, "code": "no", "only": copies})
        replaced(behind)
        assert proxy.counts().bytes_up > len(LARGE) - 100
        assert behind.objects() == {KEY: new(LARGE)}


@pytest.mark.parametrize("old", [SMALL, LARGE], ids=["small", "large"])
def test_a_layer_below_repeats_the_write_and_meets_its_own_blob(
    container: Blobs, old: bytes
) -> None:
    with store_proxy(container.port) as proxy:
        behind = Blobs(proxy.port)
        behind.put(KEY, old)
        proxy.tell(
            fail={
                "status": 412,
                "code": "ConditionNotMet",
                "after": True,
                "only": "comp=blocklist" if old is LARGE else "x-ms-blob-type",
            }
        )
        replaced(behind)
        proxy.tell(fail=None)
        assert behind.objects() == {KEY: new(old)}
