"""Folders of the local disk: what is there, and what may not be looked into."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.storage.folder_trees import LocalTree
from testing.tables import customers, write


def _refuse_to_list(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Root may look into any folder, so the system call is made to refuse."""
    scan = os.scandir

    def scandir(path: str) -> object:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_names_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert LocalTree().names(str(tmp_path)) == ["a"]
    assert LocalTree().names(str(tmp_path / "nothing")) == []


def test_a_folder_that_may_not_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "open").mkdir()
    _refuse_to_list(monkeypatch, closed)
    with pytest.raises(PolicyError, match="permission denied"):
        list(LocalTree().walk(str(tmp_path)))
    refused: list[PolicyError] = []
    levels = list(LocalTree().walk(str(tmp_path), refused))
    assert [Path(folder).name for folder, _, _ in levels] == [tmp_path.name, "open"]
    assert [error.path for error in refused] == [str(closed)]


def _disk_fails(monkeypatch: pytest.MonkeyPatch, failing: Path, code: int) -> None:
    """The system cannot say what stands at the path."""
    stat = os.stat

    def failing_stat(path: str, *args: object, **options: object) -> object:
        if str(path) == str(failing):
            raise OSError(code, os.strerror(code), str(failing))
        return stat(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", failing_stat)


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_what_cannot_be_looked_at_is_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    file = tmp_path / "x.parquet"
    file.touch()
    tree = LocalTree()
    _disk_fails(monkeypatch, file, code)
    with pytest.raises(PolicyError, match="the system refuses"):
        tree.is_file(str(file))
    with pytest.raises(PolicyError, match="the system refuses"):
        tree.is_folder(str(file))
    assert not tree.is_file(str(tmp_path / "nothing" / "x"))
    assert not tree.is_file(str(tmp_path / ("x" * 300)))
    assert not tree.is_folder("x\0")


def test_a_table_whose_log_cannot_be_looked_at_is_no_table_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    before = path.read_bytes()
    (tmp_path / "_delta_log").mkdir()
    _disk_fails(monkeypatch, tmp_path / "_delta_log", errno.EIO)
    with pytest.raises(PolicyError, match="the system refuses"):
        sb.add_bloom_filters(path, columns=["email"])
    assert path.read_bytes() == before


def test_loops_of_links_are_walked_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "x.parquet").touch()
    found = [name for _, _, files in LocalTree().walk(str(tmp_path)) for name in files]
    assert found == ["x.parquet"]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_path_that_ends_in_no_name_leads_to_its_folder(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    real = str(tmp_path if name == ".." else inner)
    assert LocalTree().key(f"{inner}/{name}") == os.path.realpath(real)
