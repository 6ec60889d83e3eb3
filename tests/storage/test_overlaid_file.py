"""A file with another tail is read as if it had been written so."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.storage import open_input
from secure_bloom.storage.inputs import OverlaidFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.bin"
    file.write_bytes(b"0123456789")
    return file


def test_every_range_is_that_of_the_new_file(path: Path) -> None:
    new = b"012345" + b"ab" + b"cde"
    with OverlaidFile(open_input(str(path)), 6, (b"ab", b"cde")) as file:
        assert file.size == len(new)
        for start in range(len(new)):
            for end in range(start, len(new) + 1):
                assert file.read_at(start, end - start) == new[start:end]
        with pytest.raises(FormatError):
            file.read_at(5, 7)


def test_it_is_another_file_than_the_old_one_and_notices_changes_of_it(path: Path) -> None:
    with open_input(str(path)) as old, OverlaidFile(open_input(str(path)), 6, (b"x",)) as file:
        assert file.identity != old.identity
        file.check_unchanged()
        path.write_bytes(b"another")
        with pytest.raises(FileChangedError):
            file.check_unchanged()


def test_files_beside_it_are_those_of_the_old_one(path: Path) -> None:
    (path.parent / "beside").write_bytes(b"x")
    with OverlaidFile(open_input(str(path)), 6, ()) as file:
        assert file.read_sibling("beside") == b"x"
        assert file.read_sibling("nothing") is None
