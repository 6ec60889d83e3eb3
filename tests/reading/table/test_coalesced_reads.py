"""Extents that lie close are read together."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError
from secure_bloom.reading.table.coalesced_reads import GAP, read_extents
from secure_bloom.storage import open_input
from secure_bloom.storage.inputs import CountedFile

CONTENT = bytes(i % 251 for i in range(100_000))


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "x").write_bytes(CONTENT)
    return str(tmp_path / "x")


def test_bytes_are_those_of_the_extents(path: str) -> None:
    extents = {"a": (5, 10), "b": (90_000, 100), "c": (12, 3), "empty": (7, 0)}
    with open_input(path) as file:
        found = read_extents(file, extents)
    assert {name: bytes(content) for name, content in found.items()} == {
        name: CONTENT[offset : offset + length] for name, (offset, length) in extents.items()
    }


def test_a_gap_is_read_with_its_neighbours(path: str) -> None:
    extents = {1: (0, 10), 2: (10 + GAP, 10), 3: (99_000, 10)}
    with open_input(path) as opened:
        file = CountedFile(opened)
        read_extents(file, extents)
        assert file.bytes_read == 10 + GAP + 10 + 10


def test_an_extent_beyond_the_end_is_an_error(path: str) -> None:
    with open_input(path) as file, pytest.raises(FormatError):
        read_extents(file, {"a": (len(CONTENT) - 5, 10)})
