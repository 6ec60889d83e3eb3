"""Which SDK writes a store, and what is said where it is not installed."""

from __future__ import annotations

import sys

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.object_writes import remove_object
from tests.storage.conftest import Bucket


def test_an_object_is_removed(bucket: Bucket) -> None:
    bucket.put("x", "y")
    remove_object(bucket.uri("x"))
    assert list(bucket.objects()) == ["y"]


@pytest.mark.parametrize(
    ("output", "needs"),
    [("gs://anonymous@b/x", "google-cloud-storage"), ("abfs://acc@b/x", "azure-storage-blob")],
)
def test_a_missing_sdk_is_named(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, output: str, needs: str
) -> None:
    bucket.put("x")
    for package in ("azure", "gcs"):
        monkeypatch.setitem(sys.modules, f"secure_bloom.storage.{package}", None)
        monkeypatch.delattr(f"secure_bloom.storage.{package}", raising=False)
    with open_input(bucket.uri("x")) as file, pytest.raises(PolicyError, match=needs) as caught:
        replace_tail(file, 10, [b"tail"], output=output)
    assert "pip install" in str(caught.value.hint)
