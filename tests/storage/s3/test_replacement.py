"""Objects of S3: only new bytes are uploaded, and no update of another program is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, SecureBloomError
from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.dispatch import create_file
from secure_bloom.storage.object_writer import LEAST_PART
from testing.storage import Bucket
from tests.storage.s3.conftest import KEY, LARGE, SIZES, TAIL, new, open_uploads, replaced


@SIZES
def test_an_object_gets_a_new_tail(any_bucket: Bucket, old: bytes) -> None:
    any_bucket.put(KEY, body=old)
    assert replaced(any_bucket) == len(new(old))
    assert any_bucket.objects() == {KEY: new(old)}
    assert open_uploads(any_bucket) == []


@SIZES
def test_a_copy_with_a_new_tail_gets_another_key(any_bucket: Bucket, old: bytes) -> None:
    any_bucket.client.put_object(
        Bucket=any_bucket.name, Key=KEY, Body=old, Metadata={"made": "by"}, ContentType="a/b"
    )
    assert replaced(any_bucket, output=any_bucket.uri("out/x.parquet")) == len(new(old))
    assert any_bucket.objects() == {KEY: old, "out/x.parquet": new(old)}
    found = any_bucket.client.head_object(Bucket=any_bucket.name, Key="out/x.parquet")
    assert found["Metadata"] == {"made": "by"}


@SIZES
def test_an_object_that_was_replaced_meanwhile_is_left_alone(
    any_bucket: Bucket, old: bytes
) -> None:
    any_bucket.put(KEY, body=old)
    with open_input(any_bucket.uri(KEY)) as file:
        any_bucket.put(KEY, body=old[::-1])
        with pytest.raises(FileChangedError, match="changed after it was read"):
            replace_tail(file, file.size - 100, TAIL)
        any_bucket.client.delete_object(Bucket=any_bucket.name, Key=KEY)
        with pytest.raises(FileChangedError, match="gone"):
            replace_tail(file, file.size - 100, TAIL)
    assert any_bucket.objects() == {}
    assert open_uploads(any_bucket) == []


class Changing(list[bytes]):
    """A tail that does something when it is looked at."""

    def __init__(self, tail: list[bytes], change: Callable[[], None]) -> None:
        super().__init__(tail)
        self.change = change

    def __iter__(self) -> Iterator[bytes]:
        self.change()
        return super().__iter__()


@SIZES
def test_a_change_during_the_upload_wins(any_bucket: Bucket, old: bytes) -> None:
    any_bucket.put(KEY, body=old)
    with open_input(any_bucket.uri(KEY)) as file:
        tail = Changing(TAIL, lambda: any_bucket.put(KEY, body=old[::-1]))
        with pytest.raises(FileChangedError):
            replace_tail(file, file.size - 100, tail)
    assert any_bucket.objects() == {KEY: old[::-1]}
    assert open_uploads(any_bucket) == []


@SIZES
def test_of_two_writers_one_is_refused(any_bucket: Bucket, old: bytes) -> None:
    any_bucket.put(KEY, body=old)
    files = [open_input(any_bucket.uri(KEY)) for _ in range(2)]
    replace_tail(files[0], len(old), [b"first"])
    with pytest.raises(FileChangedError):
        replace_tail(files[1], len(old), [b"second"])
    assert any_bucket.objects() == {KEY: old + b"first"}


@SIZES
def test_nothing_is_written_where_an_object_stands(any_bucket: Bucket, old: bytes) -> None:
    any_bucket.put(KEY, body=old)
    target = any_bucket.uri("new")
    replaced(any_bucket, output=target, must_be_new=True)
    with pytest.raises(FileChangedError, match="there already"):
        replaced(any_bucket, output=target, must_be_new=True)
    assert any_bucket.objects() == {KEY: old, "new": new(old)}
    assert open_uploads(any_bucket) == []


def test_of_many_that_create_an_object_one_succeeds(any_bucket: Bucket, tmp_path: Path) -> None:
    like = tmp_path / "0.json"
    like.write_bytes(b"version 0")
    uri = any_bucket.uri("_delta_log/1.json")
    create_file(uri, b"version of one", like=str(like))
    for _ in range(2):
        with pytest.raises(FileChangedError, match="there already"):
            create_file(uri, b"version of another", like=str(like))
    assert any_bucket.objects() == {"_delta_log/1.json": b"version of one"}


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_upload_that_breaks_off_is_aborted(
    any_bucket: Bucket, error: type[BaseException]
) -> None:
    any_bucket.put(KEY, body=LARGE)

    def fail() -> None:
        raise error

    with open_input(any_bucket.uri(KEY)) as file, pytest.raises(error):
        replace_tail(file, file.size - 100, Changing(TAIL, fail))
    assert any_bucket.objects() == {KEY: LARGE}
    assert open_uploads(any_bucket) == []


def test_a_long_tail_goes_up_in_parts(bucket: Bucket) -> None:
    bucket.put(KEY, body=LARGE)
    tail = [b"a" * 11_000_000, b"b" * 9_000_000]
    with open_input(bucket.uri(KEY)) as file:
        replace_tail(file, LEAST_PART, tail)
    assert bucket.objects() == {KEY: LARGE[:LEAST_PART] + b"".join(tail)}


@SIZES
def test_a_versioned_bucket_keeps_what_was_replaced(any_bucket: Bucket, old: bytes) -> None:
    client = any_bucket.client
    client.put_bucket_versioning(
        Bucket=any_bucket.name, VersioningConfiguration={"Status": "Enabled"}
    )
    any_bucket.put(KEY, body=old)
    replaced(any_bucket)
    versions = client.list_object_versions(Bucket=any_bucket.name)["Versions"]
    latest = {
        version["IsLatest"]: client.get_object(
            Bucket=any_bucket.name, Key=KEY, VersionId=version["VersionId"]
        )["Body"].read()
        for version in versions
    }
    assert latest == {True: new(old), False: old}


def test_an_error_of_the_store_names_the_object(bucket: Bucket) -> None:
    bucket.put(KEY)
    gone = bucket.uri("x").replace(bucket.name, "b-that-is-nowhere")
    with pytest.raises(SecureBloomError) as caught:
        replaced(bucket, output=gone)
    assert caught.value.path == gone
