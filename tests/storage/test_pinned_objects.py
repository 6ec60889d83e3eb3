"""Reads of S3 that take bytes of one object only, and no request for metadata."""

from __future__ import annotations

import sys

import pytest

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.storage import open_input, open_pinned, reopen_pinned
from testing.storage import OLD, Bucket


def test_the_end_and_every_other_read_are_those_of_the_object(bucket: Bucket) -> None:
    bucket.put("x", body=OLD * 20)
    with open_pinned(bucket.uri("x")) as file, open_input(bucket.uri("x")) as other:
        assert file.is_pinned
        assert (file.identity, file.size, file.name) == (other.identity, other.size, other.name)
        assert file.holds(file.size - 1000, 1000)
        assert file.all_bytes() == OLD * 20
        file.check_unchanged()


def test_an_object_that_was_replaced_is_not_read(bucket: Bucket) -> None:
    bucket.put("x", body=OLD * 20)
    with open_pinned(bucket.uri("x")) as file:
        bucket.put("x", body=OLD * 19 + OLD[::-1])
        with pytest.raises(FileChangedError):
            file.read_at(0, 10)
        with (
            reopen_pinned(bucket.uri("x"), file.size, file.identity) as again,
            pytest.raises(FileChangedError),
        ):
            again.read_at(0, 10)
        bucket.client.delete_object(Bucket=bucket.name, Key="x")
        with pytest.raises(FileChangedError):
            file.read_at(0, 10)


def test_an_empty_object_is_said_to_be_empty(bucket: Bucket) -> None:
    bucket.put("x", body=b"")
    with pytest.raises(FormatError, match="the file is empty"):
        open_pinned(bucket.uri("x"))


def test_without_boto3_pyarrow_reads(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("x")
    monkeypatch.delattr("secure_bloom.storage.s3", raising=False)
    monkeypatch.setitem(sys.modules, "secure_bloom.storage.s3", None)
    with open_pinned(bucket.uri("x")) as file:
        assert not file.is_pinned
        assert file.all_bytes() == OLD
