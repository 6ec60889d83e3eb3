"""The folder of compiled code: in the user's own hands, or not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secure_bloom.user_cache import is_ours_alone, user_cache


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
    folder.chmod(0o700)
    # Others may put another folder in its place.
    home.chmod(0o777)
    assert user_cache() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_or_a_link_is_not_ours_alone(tmp_path: Path) -> None:
    ours, theirs, link = (tmp_path / name for name in ("ours", "theirs", "link"))
    for path in (ours, theirs):
        path.touch(0o600)
    os.chown(theirs, 1234, 1234)
    link.symlink_to(ours)
    paths = (ours, theirs, link, tmp_path / "missing")
    assert [is_ours_alone(path) for path in paths] == [True, False, False, False]
