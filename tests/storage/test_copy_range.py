"""The head of a file is copied in every way that systems have, holes and all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from secure_bloom.errors import (
    FileChangedError,
)
from secure_bloom.storage import copy_range, open_input, replace_tail
from testing.storage import NEW, OLD, replaced


@pytest.mark.parametrize("first", range(len(copy_range._WAYS)))
def test_every_way_of_copying_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def refused(*_: int) -> int:
        raise OSError(errno.EXDEV, "not between these")

    ways = [refused] * first + copy_range._WAYS[first:]
    monkeypatch.setattr(copy_range, "_WAYS", ways)
    monkeypatch.setattr(copy_range, "_STEP_BYTES", 4096)
    path = tmp_path / "x.parquet"
    path.write_bytes(OLD)
    replaced(path)
    assert path.read_bytes() == NEW


def test_holes_stay_holes(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with path.open("wb") as file:
        for offset in (0, 1 << 20, 5 << 20):
            file.seek(offset)
            file.write(b"data")
        file.truncate(8 << 20)
    with open_input(str(path)) as file:
        if not hasattr(os, "SEEK_DATA") or path.stat().st_blocks * 512 > 1 << 20:
            pytest.skip("the file system has no holes")
        old = path.read_bytes()
        replace_tail(file, 7 << 20, [b"tail"])
    assert path.read_bytes() == old[: 7 << 20] + b"tail"
    assert path.stat().st_blocks * 512 < 1 << 20


def test_a_sparse_file_that_was_cut_meanwhile_is_noticed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    os.truncate(source, 1 << 20)
    with source.open("rb") as old, target.open("wb") as new:
        os.truncate(source, 1000)
        with pytest.raises(FileChangedError, match="ended at 1000"):
            copy_range.copy_head(old.fileno(), new.fileno(), 1 << 20)


def test_a_part_that_was_cut_off_meanwhile_is_noticed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(OLD)
    with source.open("rb") as old, target.open("wb") as new:
        os.truncate(source, 1000)
        with pytest.raises(FileChangedError, match="ended at 1000"):
            copy_range.copy_part(old.fileno(), new.fileno(), 500, len(OLD) - 500, 0)
