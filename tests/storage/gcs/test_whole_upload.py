"""Objects of Google Cloud Storage: uploaded whole, and no update of another program is lost."""

from __future__ import annotations

import pytest

from benchmarks.store_proxy import store_proxy
from tests.storage.gcs.conftest import GoogleBucket
from tests.storage.other_stores import LARGE, SMALL, StoreTests, failing_writes


class TestGoogle(StoreTests):
    """The tests of every store."""


@pytest.mark.parametrize(
    ("old", "after"),
    [
        pytest.param(SMALL, False, id="not-done"),
        pytest.param(SMALL, True, id="answer-lost"),
        # Bytes that are sent again, because the answer was lost, the emulator stores twice.
        pytest.param(LARGE * 2, False, id="in-parts", marks=pytest.mark.slow),
    ],
)
def test_a_request_that_fails_leaves_the_old_object_or_the_new_one(
    container: GoogleBucket, old: bytes, after: bool
) -> None:
    with store_proxy(container.port) as proxy:
        failing_writes(GoogleBucket(proxy.port), proxy, old, from_then_on=False, after=after)
