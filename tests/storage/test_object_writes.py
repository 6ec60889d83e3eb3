"""Which SDK writes a store, and what is said where it is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from secure_bloom.errors import FileChangedError, FormatError, MissingExtraError
from secure_bloom.storage import object_writes, open_input, replace_tail
from secure_bloom.storage.object_writes import remove_object, replace_object, write_beside
from testing.storage import KEEP, NEW, OLD, TAIL, Bucket, contents


def test_an_object_is_removed(bucket: Bucket) -> None:
    bucket.put("x", "y")
    remove_object(bucket.uri("x"))
    assert list(bucket.objects()) == ["y"]


@pytest.mark.parametrize(
    ("output", "extra"),
    [("gs://anonymous@b/x", "gcp"), ("abfs://acc@b/x", "azure")],
)
def test_the_extra_of_a_missing_sdk_is_named(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, output: str, extra: str
) -> None:
    bucket.put("x")
    for package in ("azure_blobs", "gcs"):
        monkeypatch.setitem(sys.modules, f"secure_bloom.storage.{package}", None)
        monkeypatch.delattr(f"secure_bloom.storage.{package}", raising=False)
    with open_input(bucket.uri("x")) as file, pytest.raises(MissingExtraError) as caught:
        replace_tail(file, 10, [b"tail"], output=output)
    clone = f"or in a clone: pip install '.[{extra}]'"
    assert caught.value.hint == f"pip install 'secure-bloom[{extra}]', {clone}"


def test_stores_without_invisible_uploads_write_beside_and_move(tmp_path: Path) -> None:
    key = str(tmp_path / "new" / "x.parquet")
    write_beside(fs.LocalFileSystem(), key, [b"ab", b"c"], 3, lambda: None)
    assert contents(tmp_path / "new") == {"x.parquet": b"abc"}

    def breaking() -> Iterator[bytes]:
        yield b"zz"
        raise KeyboardInterrupt

    def changed() -> None:
        raise FileChangedError("changed")

    with pytest.raises(KeyboardInterrupt):
        write_beside(fs.LocalFileSystem(), key, breaking(), 3, lambda: None)
    with pytest.raises(FileChangedError):
        write_beside(fs.LocalFileSystem(), key, [b"zzz"], 3, changed)
    with pytest.raises(FormatError, match="holds 2 bytes"):
        write_beside(fs.LocalFileSystem(), key, [b"zz"], 3, lambda: None)
    assert contents(tmp_path / "new") == {"x.parquet": b"abc"}


@pytest.mark.parametrize("must_be_new", [False, True])
def test_a_store_without_an_sdk_gets_the_whole_file_beside(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, must_be_new: bool
) -> None:
    """HDFS, in whose place a local file system stands."""
    target = data_file.with_name("out")
    monkeypatch.setattr(
        object_writes, "arrow_location", lambda _: (fs.LocalFileSystem(), str(target))
    )
    with open_input(str(data_file)) as file:
        size = replace_object(file, KEEP, TAIL, "hdfs://lake/out", must_be_new=must_be_new)
        assert size == len(NEW)
        assert contents(data_file.parent) == {data_file.name: OLD, "out": NEW}
        if must_be_new:
            with pytest.raises(FileChangedError, match="there already"):
                replace_object(file, 0, [b"other"], "hdfs://lake/out", must_be_new=True)
    assert target.read_bytes() == NEW
