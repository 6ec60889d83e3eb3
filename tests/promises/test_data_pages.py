"""Data pages are never modified."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.parquet.pages import chunk_extent
from testing.surgery import opened
from testing.tables import KEYRING, Mode, customers, read, write

MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
IN_PLACE = pytest.mark.parametrize("in_place", [False, True], ids=["replaced", "in place"])


def end_of_data(path: Path) -> int:
    """Where the data of a file end, and its footer begins."""
    with opened(path) as it:
        return it.footer.tail.offset


def pages(path: Path) -> list[bytes]:
    """The bytes of the pages of every chunk, as they are stored."""
    with opened(path) as it:
        chunks = [
            it.chunk(row_group, leaf.name)
            for row_group in range(len(it.footer.row_groups))
            for leaf in it.footer.leaves
        ]
        extents = [chunk_extent(chunk) for chunk in chunks]
        return [it.file.read_at(start, length) for start, length in extents]


@MODES
@IN_PLACE
def test_data_pages_are_never_modified(tmp_path: Path, mode: Mode, in_place: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(1500), mode)
    before, rows = pages(path), read(path)
    sb.add_bloom_filters(path, columns=["email", "id"], keys=KEYRING, in_place=in_place)
    assert pages(path) == before
    assert read(path).equals(rows)


@MODES
@IN_PLACE
def test_new_bytes_are_written_after_everything_that_the_file_had(
    tmp_path: Path, mode: Mode, in_place: bool
) -> None:
    path = write(tmp_path / "x.parquet", customers(1500), mode)
    old, end = path.read_bytes(), end_of_data(path)
    sb.add_bloom_filters(path, columns=["email", "id"], keys=KEYRING, in_place=in_place)
    new = path.read_bytes()
    # A replaced file keeps everything but the old footer; one in place keeps the footer, too.
    assert new[:end] == old[:end]
    assert not in_place or new[: len(old)] == old
    # The new footer comes after the filters.
    assert end_of_data(path) > end


def test_a_file_is_replaced_by_one_rename(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(1500))
    with path.open("rb") as held:
        sb.add_bloom_filters(path, columns="email")
        # Whoever had the old file open has it still: the name leads to another file.
        assert held.read() != path.read_bytes()
    assert [other.name for other in tmp_path.iterdir()] == ["x.parquet"]


def test_or_appended_to_with_in_place(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(1500))
    before = path.stat().st_ino
    sb.add_bloom_filters(path, columns="email", in_place=True)
    assert path.stat().st_ino == before
