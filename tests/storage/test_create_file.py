"""A small file is created once, whoever tries at the same time."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.storage.dispatch import create_file
from secure_bloom.storage.open_folder import OpenFolder
from testing.storage import Bucket, contents


@pytest.fixture
def like(tmp_path: Path) -> Path:
    path = tmp_path / "0.json"
    path.write_text("first")
    path.chmod(0o640)
    return path


@pytest.mark.usefixtures("staging")
def test_a_file_is_there_whole_with_the_permissions_of_its_pattern(like: Path) -> None:
    create_file(str(like.with_name("1.json")), b"second", like=str(like))
    assert contents(like.parent) == {"0.json": b"first", "1.json": b"second"}
    assert stat.S_IMODE(like.with_name("1.json").stat().st_mode) == 0o640


@pytest.mark.usefixtures("staging")
def test_what_stands_there_stays(like: Path) -> None:
    with pytest.raises(FileChangedError):
        create_file(str(like), b"second", like=str(like))
    assert contents(like.parent) == {"0.json": b"first"}


@pytest.mark.usefixtures("staging")
def test_of_many_writers_exactly_one_succeeds(like: Path) -> None:
    def attempt(number: int) -> bool:
        try:
            create_file(str(like.with_name("1.json")), b"%d" % number, like=str(like))
        except FileChangedError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, done in enumerate(pool.map(attempt, range(40))) if done]
    assert len(won) == 1
    assert contents(like.parent) == {"0.json": b"first", "1.json": b"%d" % won[0]}


def test_without_hard_links_nothing_is_written(like: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(OpenFolder, "give_name", no_links)
    monkeypatch.setattr(OpenFolder, "link", no_links)
    with pytest.raises(UnsupportedFeatureError, match="hard links"):
        create_file(str(like.with_name("1.json")), b"second", like=str(like))
    assert contents(like.parent) == {"0.json": b"first"}


def test_an_object_is_created_once(bucket: Bucket) -> None:
    bucket.put("0.json", body=b"first")
    create_file(bucket.uri("1.json"), b"second", like=bucket.uri("0.json"))
    with pytest.raises(FileChangedError):
        create_file(bucket.uri("1.json"), b"third", like=bucket.uri("0.json"))
    assert bucket.objects() == {"0.json": b"first", "1.json": b"second"}


def test_other_stores_are_refused(like: Path) -> None:
    with pytest.raises(SecureBloomError):
        create_file("gs://bucket/1.json", b"x", like=str(like))
