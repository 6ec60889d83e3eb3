"""Paths and URIs: local or not, and what their parts are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.storage.paths import (
    as_path,
    as_paths,
    below,
    is_object_uri,
    join,
    local_path,
    name_of,
    object_uri,
    sibling,
)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/data/x.parquet", "/data/x.parquet"),
        ("file:///data/x.parquet", "/data/x.parquet"),
        ("file://localhost/data/x.parquet", "/data/x.parquet"),
        ("FILE:///data/a%20b%3A.parquet", "/data/a b:.parquet"),
        ("data/a%20b.parquet", "data/a%20b.parquet"),
        ("file.parquet", "file.parquet"),
    ],
)
def test_file_uris_are_decoded_and_paths_are_not(uri: str, path: str) -> None:
    assert local_path(uri) == path
    assert not is_object_uri(uri)


def test_a_file_uri_of_windows_has_a_drive_there_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_path("file:///C:/data/x.parquet") == "/C:/data/x.parquet"
    monkeypatch.setattr("os.sep", "\\")
    assert local_path("file:///C:/data/x.parquet") == "C:/data/x.parquet"
    assert local_path("file:/d:/a%20b") == "d:/a b"
    assert local_path("file:///data/x.parquet") == "/data/x.parquet"


def test_a_file_uri_of_another_host_is_refused() -> None:
    with pytest.raises(PolicyError, match="nas"):
        local_path("file://nas/data/x.parquet")


def test_a_path_object_is_a_path() -> None:
    assert local_path(Path("/data/x.parquet")) == "/data/x.parquet"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "hdfs", "S3"])
def test_object_stores_are_known_by_their_scheme(scheme: str) -> None:
    assert is_object_uri(f"{scheme}://bucket/key")


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError, match="https://"):
        is_object_uri("https://example.org/x.parquet")


def test_a_uri_has_parts_and_the_query_stays() -> None:
    uri = object_uri("s3a://bucket/a%3Ab/x.parquet?endpoint_override=h:1&scheme=http")
    assert (uri.authority, uri.key) == ("bucket", "a%3Ab/x.parquet")
    assert uri.store() == "s3://bucket/?endpoint_override=h:1&scheme=http"
    assert str(uri.at("y")) == "s3a://bucket/y?endpoint_override=h:1&scheme=http"


QUERY = "?endpoint_override=h:1&scheme=http"


@pytest.mark.parametrize(
    ("path", "beside"),
    [
        ("x.parquet", "n"),
        ("/x.parquet", "/n"),
        ("t/x.parquet", "t/n"),
        ("s3://bucket/x.parquet", "s3://bucket/n"),
        (f"s3a://bucket/t/x.parquet{QUERY}", f"s3a://bucket/t/n{QUERY}"),
    ],
)
def test_a_name_beside_a_file(path: str, beside: str) -> None:
    assert sibling(path, "n") == beside
    assert name_of(path) == "x.parquet"


@pytest.mark.parametrize(
    ("folder", "inside"),
    [
        ("t", "t/a/n"),
        ("/t/", "/t/a/n"),
        ("/", "/a/n"),
        ("s3://bucket", "s3://bucket/a/n"),
        (f"s3a://bucket/t/{QUERY}", f"s3a://bucket/t/a/n{QUERY}"),
    ],
)
def test_a_place_in_a_folder(folder: str, inside: str) -> None:
    assert join(folder, "a/n") == inside
    assert below(inside, folder) == "a/n"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/table-2/x", "/table"),
        ("s3://bucket/table-2/x", "s3://bucket/table"),
        ("s3://other/table/x", "s3://bucket/table"),
        (f"s3://bucket/table/x{QUERY}", "s3://bucket/table"),
        ("/table/x", "s3://bucket/table"),
    ],
)
def test_a_file_outside_a_folder(path: str, folder: str) -> None:
    assert below(path, folder) is None


def test_an_empty_path_is_refused() -> None:
    """A shell makes one of a variable that is not set; below it, files would lie below /."""
    for call in (lambda: as_path(""), lambda: as_paths(["data", ""])):
        with pytest.raises(PolicyError, match="a path is empty"):
            call()


def test_a_password_in_a_uri_is_refused_and_not_repeated() -> None:
    with pytest.raises(PolicyError) as caught:
        object_uri("s3://AKIA:hunter2@bucket/x.parquet")
    assert "hunter2" not in str(caught.value)


@given(st.text("ab/=%. ", min_size=1).map(lambda key: key.strip("/")))
def test_a_uri_is_written_as_it_was_read(key: str) -> None:
    text = f"gs://bucket/{key}" if key else "gs://bucket"
    assert str(object_uri(text)) == text


def test_importing_storage_loads_neither_pyarrow_nor_numpy() -> None:
    program = (
        "import sys, secure_bloom.storage; "
        "print([name for name in ('pyarrow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("paths", "wanted"), [([], "no path is given"), (7, "wanted"), ([7], "wanted")]
)
def test_what_is_no_path_is_refused(paths: object, wanted: str) -> None:
    with pytest.raises(PolicyError, match=wanted):
        as_paths(paths)


class _PathOfBytes:
    def __fspath__(self) -> bytes:
        return b"t"


@pytest.mark.parametrize("path", [b"t", bytearray(b"t"), _PathOfBytes(), [_PathOfBytes()]])
def test_bytes_are_no_path(path: object) -> None:
    with pytest.raises(PolicyError, match="byte"):
        as_paths(path)  # type: ignore[arg-type]
