"""The folder of compiled code: in the user's own hands, or not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.spark.jvm import is_own_file, is_own_folder, user_cache

#: A user and a group that are not root.
THEM = (1234, 1234)
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_it_is_made_in_the_home_folder_for_its_user_alone(home: Path) -> None:
    folder = user_cache()
    assert folder == home / ".cache" / "secure-bloom"
    assert folder.stat().st_mode & 0o077 == 0
    assert user_cache() == folder


def test_a_folder_that_is_named_goes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "elsewhere"))
    assert user_cache() == home / "elsewhere" / "secure-bloom"


def test_where_no_folder_can_be_made_there_is_none(home: Path) -> None:
    (home / ".cache").touch()
    assert user_cache() is None


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_may_write_is_none(home: Path, mode: int) -> None:
    folder = user_cache()
    assert folder is not None
    folder.chmod(mode)
    assert user_cache() is None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o720])
def test_a_folder_in_whose_place_others_may_put_one_is_none(home: Path, mode: int) -> None:
    folder = user_cache()
    assert folder is not None
    for parent in (home, folder.parent):
        parent.chmod(mode)
        assert user_cache() is None
        parent.chmod(mode | 0o1000)  # sticky, as /tmp: what the user owns keeps its name
        assert user_cache() == folder
        parent.chmod(0o755)


@ROOT
@pytest.mark.parametrize("mode", [0o700, 0o1777])
def test_a_folder_in_one_of_another_user_is_none(home: Path, mode: int) -> None:
    folder = user_cache()
    assert folder is not None
    for theirs in (home, folder.parent, folder):
        theirs.chmod(mode)
        os.chown(theirs, *THEM)
        assert user_cache() is None
        os.chown(theirs, 0, 0)
        theirs.chmod(0o700)


@ROOT
def test_a_link_to_a_folder_of_another_user_is_none(home: Path) -> None:
    theirs = home / "theirs"
    theirs.mkdir()
    os.chown(theirs, *THEM)
    (home / ".cache").mkdir()
    (home / ".cache" / "secure-bloom").symlink_to(theirs)
    assert user_cache() is None


def test_a_link_to_an_own_folder_is_that_folder(home: Path) -> None:
    (home / "disk").mkdir(mode=0o700)
    (home / ".cache").symlink_to(home / "disk")
    assert user_cache() == home / "disk" / "secure-bloom"


def test_a_link_that_takes_a_folders_place_later_is_not_followed(home: Path) -> None:
    folder = user_cache()
    assert folder is not None
    folder.rename(home / "moved")
    folder.symlink_to(home / "moved")
    assert is_own_folder(home / "moved")
    assert not is_own_folder(folder)
    (home / "moved" / "jar").touch(0o600)
    assert is_own_file(home / "moved" / "jar")
    assert not is_own_file(folder / "jar")


@pytest.fixture
def folder(home: Path) -> Path:
    folder = user_cache()
    assert folder is not None
    return folder


@ROOT
def test_a_file_of_another_user_is_not_own(folder: Path) -> None:
    for name in ("ours", "theirs"):
        (folder / name).touch(0o600)
    os.chown(folder / "theirs", *THEM)
    found = {name: is_own_file(folder / name) for name in ("ours", "theirs", "missing")}
    assert found == {"ours": True, "theirs": False, "missing": False}


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_own(folder: Path, mode: int) -> None:
    (folder / "jar").touch()
    (folder / "jar").chmod(mode)
    assert not is_own_file(folder / "jar")


def test_only_a_regular_file_is_own(folder: Path) -> None:
    (folder / "jar").touch(0o600)
    (folder / "link").symlink_to("jar")
    (folder / "folder").mkdir(mode=0o700)
    os.mkfifo(folder / "pipe", 0o600)
    found = [is_own_file(folder / name) for name in ("jar", "link", "folder", "pipe")]
    assert found == [True, False, False, False]


def test_a_file_in_a_folder_that_others_may_write_is_not_own(folder: Path) -> None:
    (folder / "jar").touch(0o600)
    for mode in (0o770, 0o1777):  # sticky: others cannot exchange the jar, but put others beside it
        folder.chmod(mode)
        assert not is_own_file(folder / "jar")


def test_looking_leaves_no_descriptor_open(folder: Path) -> None:
    (folder / "jar").touch(0o600)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (folder / "jar", folder / "missing", folder / "jar" / "below"):
        is_own_file(path)
        is_own_folder(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
