"""A folder by its descriptor: names are looked up in it, and never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.storage.open_folder import OpenFolder, close


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to("a")
    return tmp_path


def test_a_link_is_not_followed(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        with pytest.raises(OSError, match="symbolic link"):
            opened.open("link", os.O_RDONLY)
        status = opened.status("link")
        assert status is not None
        assert status.st_ino != (folder / "a").stat().st_ino


def test_names_are_given_taken_and_told(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        fd = opened.open("a", os.O_RDONLY)
        assert opened.holds("a", fd)
        assert not opened.holds("link", fd)
        opened.rename("a", "b")
        assert not opened.holds("a", fd)
        assert opened.status("a") is None
        opened.link("b", "c")
        with pytest.raises(FileExistsError):
            opened.link("b", "c")
        opened.unlink("c")
        opened.unlink("c")
        opened.sync()
        close(fd)
    assert sorted(path.name for path in folder.iterdir()) == ["b", "link"]


def test_a_folder_that_was_moved_away_stays_the_one_that_was_opened(folder: Path) -> None:
    with OpenFolder(str(folder)) as opened:
        moved = folder.rename(folder.with_name("moved"))
        folder.mkdir()
        opened.rename("a", "b")
        assert (moved / "b").exists()
        assert list(folder.iterdir()) == []
