"""Objects of Google Cloud Storage: uploaded whole, and no update of another program is lost."""

from __future__ import annotations

import pytest

from benchmarks.store_proxy import store_proxy
from secure_bloom.errors import FileChangedError
from secure_bloom.storage import open_input, replace_tail
from tests.storage.gcs.conftest import GoogleBucket
from tests.storage.other_stores import KEY, LARGE, SMALL, Changing, StoreTests, failing_writes


class TestGoogle(StoreTests):
    """The tests of every store."""


@pytest.mark.parametrize(
    ("old", "status", "from_then_on", "after"),
    [
        pytest.param(SMALL, 503, False, False, id="not-done"),
        pytest.param(SMALL, 503, False, True, id="answer-lost"),
        # What is refused is not tried again; for what is broken the SDK waits two minutes.
        pytest.param(SMALL, 403, True, False, id="refused-from-then-on"),
        pytest.param(SMALL, 403, True, True, id="refused-from-then-on-after"),
        pytest.param(LARGE * 2, 403, True, False, id="in-parts-refused-from-then-on"),
        # Bytes that are sent again, because the answer was lost, the emulator stores twice.
        pytest.param(LARGE * 2, 503, False, False, id="in-parts", marks=pytest.mark.slow),
    ],
)
def test_a_request_that_fails_leaves_the_old_object_or_the_new_one(
    container: GoogleBucket, old: bytes, status: int, from_then_on: bool, after: bool
) -> None:
    with store_proxy(container.port) as proxy:
        behind = GoogleBucket(proxy.port)
        failing_writes(behind, proxy, old, from_then_on=from_then_on, after=after, status=status)


def test_a_change_during_an_upload_in_parts_is_found_before_its_last_bytes(
    container: GoogleBucket,
) -> None:
    """The emulator ignores the condition of such an upload, which the store itself does not."""
    container.put(KEY, LARGE * 2)
    with open_input(container.uri(KEY)) as file:
        tail = Changing(lambda: container.put(KEY, LARGE))
        with pytest.raises(FileChangedError, match="changed after it was read"):
            replace_tail(file, file.size - 100, tail)
    assert container.objects() == {KEY: LARGE}
