"""Rows are left out by the index of pages, as far as it is whole and belongs to the chunk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.surgery import Opened, edit_footer, flip, opened
from testing.tables import KEYRING, Mode, write

ROWS, PAGE = 600, 100
MODES = pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)


def written(path: Path, mode: Mode) -> Path:
    """Two ascending columns in pages of a hundred rows; `b` comes a page later than `a`."""
    table = pa.table({"a": range(ROWS), "b": [max(0, i - PAGE) for i in range(ROWS)]})
    return write(
        path,
        table,
        mode,
        column_keys={"k_pii": ["a"]},
        use_dictionary=False,
        write_page_index=True,
        write_batch_size=PAGE,
        data_page_size=1,
    )


def left_of(path: Path, where: str) -> tuple[tuple[int, int], ...] | None:
    """The rows that the plan leaves of the one row group; None for all of them."""
    (file,) = sb.explain(path, where=where, keys=KEYRING).files
    (group,) = file.row_groups
    return () if group.skipped_by == "page index" else group.ranges


@MODES
@pytest.mark.parametrize(
    ("where", "left", "rows"),
    [
        ("a = 150", ((100, 200),), 1),
        ("a = 150 and b = 150", (), 0),
        ("a >= 150 and b <= 150", ((100, 300),), 101),
        ("a = 150 or b = 150", ((100, 300),), 2),
        ("a = 50 or a = 550", ((0, 100), (500, 600)), 2),
        ("(a = 50 and b = 0) or b = 250", ((0, 100), (300, 400)), 2),
        ("a = 150 or b >= 0", None, ROWS),
    ],
)
def test_rows_of_parts_are_joined_as_the_condition_joins_them(
    tmp_path: Path, mode: Mode, where: str, left: tuple[tuple[int, int], ...] | None, rows: int
) -> None:
    path = written(tmp_path / "x.parquet", mode)
    assert left_of(path, where) == left
    assert sb.read_table(path, where=where, keys=KEYRING).num_rows == rows


def _without_a_length(it: Opened) -> None:
    del it.chunk(0, "a").column_chunk.column_index_length


def _beyond_the_file(it: Opened) -> None:
    it.chunk(0, "a").column_chunk.offset_index_offset = it.file.size


def _of_another_column(it: Opened) -> None:
    of, other = it.chunk(0, "a").column_chunk, it.chunk(0, "b").column_chunk
    of.offset_index_offset, of.offset_index_length = (
        other.offset_index_offset or 0,
        other.offset_index_length or 0,
    )


@pytest.mark.parametrize("damage", [_without_a_length, _beyond_the_file, _of_another_column])
def test_an_index_that_cannot_be_the_chunks_leaves_nothing_out(
    tmp_path: Path, damage: Callable[[Opened], None]
) -> None:
    path = written(tmp_path / "x.parquet", Mode.PLAIN)
    edit_footer(path, damage)
    assert left_of(path, "a = 150") is None
    assert sb.read_table(path, where="a = 150").num_rows == 1


def test_an_altered_index_of_an_encrypted_column_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", Mode.ENCRYPTED)
    with opened(path) as it:
        offset = it.chunk(0, "a").column_chunk.column_index_offset
    assert offset is not None
    flip(path, offset + 30)
    with pytest.raises(sb.IntegrityError, match="row group 0, column a"):
        sb.read_table(path, where="a = 150", keys=KEYRING)
