"""A path decides whether the disk or an object store is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.storage.dispatch import append_tail, open_input, refuse_append, replace_tail


def test_a_file_uri_means_the_disk(data_file: Path) -> None:
    with open_input(data_file.as_uri()) as file:
        size = append_tail(file, [b"tail"])
    assert data_file.stat().st_size == size


def test_no_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no such file") as caught:
        open_input(str(tmp_path / "none"))
    assert caught.value.path == str(tmp_path / "none")


def test_no_more_is_kept_than_there_is(data_file: Path) -> None:
    before = data_file.read_bytes()
    with open_input(str(data_file)) as file, pytest.raises(FormatError, match="the file has"):
        replace_tail(file, len(before) + 1, [b"tail"])
    assert data_file.read_bytes() == before


@pytest.mark.parametrize("uri", ["s3://bucket/key", "s3a://bucket/key", "gs://bucket/key"])
def test_the_first_object_among_paths_is_named(uri: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        refuse_append(["/local/file", uri, "s3://bucket/other"])
    assert caught.value.path == uri
    assert "--in-place" in str(caught.value.hint)


def test_local_paths_can_be_appended_to() -> None:
    refuse_append(["/local/file", "file:///local/other"])
