"""All bytes are read and written, however little a system call takes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from secure_bloom.errors import (
    FileChangedError,
)
from secure_bloom.storage import durable_writes, open_folder, open_input, replace_tail
from secure_bloom.storage.durable_writes import make_folders, read_all, remove_sidecar, write_all
from secure_bloom.storage.open_folder import OpenFolder
from testing.storage import NEW, OLD, replaced


def test_short_reads_are_put_together(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = open_folder.pread
    monkeypatch.setattr(durable_writes, "pread", lambda fd, n, at: real(fd, min(n, 7), at))
    with data_file.open("rb") as file:
        assert read_all(file.fileno(), 3, 100) == data_file.read_bytes()[3:103]


def test_a_read_behind_the_end_gives_what_is_there(data_file: Path) -> None:
    size = data_file.stat().st_size
    with data_file.open("rb") as file:
        assert len(read_all(file.fileno(), size - 5, 100)) == 5
        assert read_all(file.fileno(), size, 100) == b""


def test_more_parts_than_one_call_takes_are_written_in_order(tmp_path: Path) -> None:
    parts = [bytes([i % 251]) * (i % 3) for i in range(3000)]
    with (tmp_path / "x").open("wb") as file:
        end = write_all(file.fileno(), parts, 10)
    assert (tmp_path / "x").read_bytes() == bytes(10) + b"".join(parts)
    assert end == 10 + sum(map(len, parts))


def test_a_write_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    with (tmp_path / "x").open("wb") as file, pytest.raises(OSError, match="none of the bytes"):
        write_all(file.fileno(), [b"x"], 0)


def test_missing_folders_are_made_and_those_there_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept").touch()
    make_folders(str(tmp_path / "a" / "b" / "c"))
    make_folders(str(tmp_path / "a" / "b" / "c"))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b", "kept"]


def test_the_checksum_of_one_file_goes_and_no_other(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f".{name}.crc").touch()
    with OpenFolder(str(tmp_path)) as folder:
        remove_sidecar(folder, "x")
        remove_sidecar(folder, "x")
    assert [path.name for path in tmp_path.iterdir()] == [".y.crc"]


@pytest.mark.parametrize("first", range(len(durable_writes._WAYS)))
def test_every_way_of_copying_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def refused(*_: int) -> int:
        raise OSError(errno.EXDEV, "not between these")

    ways = [refused] * first + durable_writes._WAYS[first:]
    monkeypatch.setattr(durable_writes, "_WAYS", ways)
    monkeypatch.setattr(durable_writes, "_STEP_BYTES", 4096)
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
            durable_writes.copy_head(old.fileno(), new.fileno(), 1 << 20)


def test_a_part_that_was_cut_off_meanwhile_is_noticed(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(OLD)
    with source.open("rb") as old, target.open("wb") as new:
        os.truncate(source, 1000)
        with pytest.raises(FileChangedError, match="ended at 1000"):
            durable_writes.copy_part(old.fileno(), new.fileno(), 500, len(OLD) - 500, 0)
