"""A file that counts what is read of it, and is the other file in all else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError
from secure_bloom.storage import CountedFile, open_input
from secure_bloom.storage.counted_file import covered
from testing.storage import OLD


def test_reads_are_counted_and_joined_where_they_follow_one_another(data_file: Path) -> None:
    with open_input(str(data_file)) as file, CountedFile(file) as counted:
        assert counted.read_at(10, 5) == OLD[10:15]
        assert counted.read_at(15, 5) == OLD[15:20]
        assert counted.read_at(0, 12) == OLD[:12]
    assert (counted.bytes_read, counted.requests) == (22, 3)
    assert counted.extents == [(10, 20), (0, 12)]
    assert covered(counted.extents) == 20


def test_content_that_repeats_is_counted_as_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"ab...." * 3 + b"ac....")
    with open_input(str(tmp_path / "x")) as file, CountedFile(file) as counted:
        assert counted.repeats(b"ab", 0, 6, 9) == 3
    assert (counted.bytes_read, counted.requests) == (6, 3)
    assert counted.extents == [(0, 2), (6, 8), (12, 14)]


def test_it_is_the_file_that_it_counts(data_file: Path) -> None:
    data_file.with_name("beside.json").write_text(json.dumps({"a": 1}))
    with open_input(str(data_file)) as file:
        counted = CountedFile(file)
        assert (counted.path, counted.size) == (str(data_file), len(OLD))
        assert counted.read_sibling("beside.json") == b'{"a": 1}'
        counted.check_unchanged()
        data_file.write_bytes(OLD + b"!")
        with pytest.raises(FileChangedError):
            counted.check_unchanged()


def test_closing_it_closes_the_file(data_file: Path) -> None:
    file = open_input(str(data_file))
    CountedFile(file).close()
    # A closed file has no descriptor left to close: closing twice is no error.
    file.close()
    with pytest.raises(Exception, match="refuses"):
        file.read_at(0, 1)
