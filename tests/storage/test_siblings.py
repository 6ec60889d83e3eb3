"""A file that belongs to another is removed with its checksum."""

from __future__ import annotations

from pathlib import Path

from secure_bloom.storage.dispatch import remove_file


def test_a_file_goes_with_its_checksum(tmp_path: Path) -> None:
    for name in ("x.index", ".x.index.crc", "x", ".x.crc"):
        (tmp_path / name).touch()
    remove_file(str(tmp_path / "x.index"))
    assert {path.name for path in tmp_path.iterdir()} == {"x", ".x.crc"}


def test_a_file_that_is_not_there_is_as_good(tmp_path: Path) -> None:
    remove_file(str(tmp_path / "x.index"))
    assert list(tmp_path.iterdir()) == []
