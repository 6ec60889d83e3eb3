"""Objects of Google Cloud Storage: uploaded whole, and no update of another program is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import PreconditionFailed
from google.cloud.storage import Blob

from secure_bloom.errors import AccessDeniedError, FileChangedError
from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.rewritten_file import OldRange, RewrittenFile
from testing.store_proxy import store_proxy
from tests.storage.gcs.conftest import GoogleBucket
from tests.storage.other_stores import (
    KEY,
    LARGE,
    SMALL,
    TAIL,
    Changing,
    StoreTests,
    failing_writes,
    new,
    replaced,
)

#: Bytes of one request.
CHUNK = 8 * 1024 * 1024


class TestGoogle(StoreTests):
    """The tests of every store."""

    # The key of an object is in the body of its upload, and key material goes up before data.
    late, late_number = "POST /upload", 1


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


def test_the_store_gets_the_sum_of_all_bytes_before_the_object_is_visible(
    container: GoogleBucket,
) -> None:
    with store_proxy(container.port) as proxy:
        behind = GoogleBucket(proxy.port)
        behind.put(KEY, LARGE * 2)
        with open_input(behind.uri(KEY)) as file:
            proxy.tell(fail={"from_then_on": True, "status": 403, "only": "x-goog-hash"})
            with pytest.raises(AccessDeniedError):
                replace_tail(file, file.size - 100, TAIL)
        proxy.tell(fail=None)
        assert behind.objects() == {KEY: LARGE * 2}


def test_an_object_that_is_replaced_while_it_is_opened_is_opened_again(
    container: GoogleBucket,
) -> None:
    """Between two requests of pyarrow the generation that it asks for is gone."""
    container.put(KEY, SMALL)
    with store_proxy(container.port) as proxy:
        uri = container.uri(KEY).replace(container.port, proxy.port)
        gone = {"status": 404, "only": "alt=media"}
        proxy.tell(fail=gone)
        with open_input(uri) as file:
            assert file.all_bytes() == SMALL
        proxy.tell(fail=gone | {"from_then_on": True})
        with pytest.raises(FileChangedError, match="replaced") as caught:
            open_input(uri)
    assert caught.value.path == uri


@pytest.mark.parametrize("size", [2 * CHUNK, 2 * CHUNK + 5])
def test_whole_requests_are_checked_too(container: GoogleBucket, tmp_path: Path, size: int) -> None:
    content = b"0123456789abcdef" * (size // 16) + b"01234"[: size % 16]
    (tmp_path / "x").write_bytes(content)
    with open_input(str(tmp_path / "x")) as file:
        replace_tail(file, size, [], output=container.uri("x"), must_be_new=True)
        with pytest.raises(FileChangedError, match="there already"):
            replace_tail(file, size, [], output=container.uri("x"), must_be_new=True)
    assert container.objects() == {"x": content}


def test_what_is_worked_out_while_it_goes_up_is_written(container: GoogleBucket) -> None:
    container.put(KEY, SMALL)
    with open_input(container.uri(KEY)) as file:
        parts = [b"a" * (CHUNK + 1), OldRange(6, 12), b"end"]
        size = replace_tail(RewrittenFile(file, parts), 0, [])
    assert container.objects() == {KEY: b"a" * (CHUNK + 1) + SMALL[6:18] + b"end"}
    assert size == len(container.objects()[KEY])


@pytest.mark.parametrize("old", [SMALL, LARGE], ids=["small", "large"])
def test_a_layer_below_repeats_the_write_and_meets_its_own_object(
    container: GoogleBucket, old: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    container.put(KEY, old)
    upload = Blob.upload_from_file

    def repeated(self: Any, content: Any, **options: Any) -> None:
        upload(self, content, **options)
        raise PreconditionFailed("conditionNotMet")

    monkeypatch.setattr(Blob, "upload_from_file", repeated)
    replaced(container)
    assert container.objects() == {KEY: new(old)}
