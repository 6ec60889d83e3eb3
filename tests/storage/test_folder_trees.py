"""Folders of the local disk: what is there, and what may not be looked into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage.folder_trees import LocalTree


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
