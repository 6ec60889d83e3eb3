"""Marks at the starts of appends: found where they stand, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.adding.in_place import append_mark, find_marks, find_torn_mark
from secure_bloom.storage import open_input

SIZE = len(append_mark(0))


def marks(folder: Path, content: bytes, first: int = 0) -> list[int]:
    (folder / "x").write_bytes(content)
    with open_input(str(folder / "x")) as file:
        return [at for at, _ in find_marks(file, file.size, first)]


def test_marks_are_found_from_behind(tmp_path: Path) -> None:
    first = b"old" + append_mark(3) + b"new"
    content = first + append_mark(len(first)) + b"newer"
    assert marks(tmp_path, content) == [len(first), 3]
    assert marks(tmp_path, content, first=4) == [len(first)]


def test_a_mark_that_was_copied_elsewhere_is_none(tmp_path: Path) -> None:
    assert marks(tmp_path, b"older" + append_mark(3)) == []


@pytest.mark.parametrize("size", [1, 7, SIZE - 1])
def test_a_mark_that_the_end_cuts_off_is_found(tmp_path: Path, size: int) -> None:
    (tmp_path / "x").write_bytes(b"old file" + append_mark(8)[:size])
    with open_input(str(tmp_path / "x")) as file:
        assert list(find_torn_mark(file)) == [8]


def test_a_whole_mark_is_not_torn(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old file" + append_mark(8))
    with open_input(str(tmp_path / "x")) as file:
        assert list(find_torn_mark(file)) == []
