"""Which SDK writes a store, and what is said where it is not installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

from secure_bloom.errors import FileChangedError, FormatError, MissingExtraError
from secure_bloom.storage import object_writes, objects, open_input, replace_tail
from secure_bloom.storage.object_writes import remove_object, replace_object, write_beside
from secure_bloom.storage.objects import open_object
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


class _ReplacedAfterOpening:
    """A file system without marks, as HDFS, in which a write comes after the first opening."""

    type_name = "hdfs"

    def __init__(self, path: Path) -> None:
        self._path, self._files, self._is_new = path, fs.LocalFileSystem(), False

    def get_file_info(self, key: str) -> fs.FileInfo:
        return self._files.get_file_info(key)

    def open_input_file(self, key: str) -> pa.NativeFile:
        opened = self._files.open_input_file(key)
        if not self._is_new:
            new = self._path.with_name("new")
            new.write_bytes(bytes(len(OLD)))
            os.utime(new, ns=(10**18, 10**18))
            new.replace(self._path)
            self._is_new = True
        return opened


def test_a_write_right_after_the_opening_is_seen_where_objects_have_no_marks(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = _ReplacedAfterOpening(data_file)
    monkeypatch.setattr(objects, "arrow_location", lambda _: (filesystem, str(data_file)))
    with open_object("hdfs://lake/x") as file:
        assert file.all_bytes() == OLD
        with pytest.raises(FileChangedError):
            file.check_unchanged()
