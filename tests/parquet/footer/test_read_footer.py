"""Footers of a read: opened and scanned, their chunks decoded when they are asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import FormatError, KeyUnavailableError
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, customers, write

ROWS = 200


def footer_of(path: Path, resolver: KeyResolver | None = None) -> Footer:
    with open_input(str(path)) as file:
        return read_footer(file, resolver or KeyResolver(KEYRING), SchemaCache())


@pytest.mark.parametrize("mode", list(Mode))
def test_chunks_have_their_own_rows_and_columns(tmp_path: Path, mode: Mode) -> None:
    table = customers(ROWS)
    footer = footer_of(write(tmp_path / "x.parquet", table, mode, row_group_size=150))
    assert [group.num_rows for group in footer.row_groups] == [150, 50]
    for ordinal, name in enumerate(table.column_names):
        chunk = footer.chunk_to_read(1, ordinal)
        assert (chunk.leaf.name, chunk.meta_data.num_values) == (name, 50)
        assert chunk is footer.chunk_to_read(1, ordinal)
    assert footer.is_verified


def test_a_signed_footer_without_its_key_is_not_verified(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(ROWS), Mode.SIGNED)
    footer = footer_of(path, KeyResolver(None, trust=Trust(allow_unverified=True)))
    assert not footer.is_verified
    columns = footer.columns.ordinals
    assert footer.chunk_to_read(0, columns["score",]).meta_data.num_values == ROWS
    with pytest.raises(KeyUnavailableError) as caught:
        footer.chunk_to_read(0, columns["email",])
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def _break_encodings(path: Path, column: str) -> None:
    """Make a list of the column's last chunk one of another type; the structure stays whole."""
    plain, content = footer_of(path).plain, path.read_bytes()
    encodings = plain.rindex(b"\x19\x35", 0, plain.rindex(column.encode())) + 1
    start = content.index(plain) + encodings
    path.write_bytes(content[:start] + b"\x36" + content[start + 1 :])


def test_a_damaged_chunk_is_an_error_with_its_place_once_it_is_used(tmp_path: Path) -> None:
    table = pa.table({"number": [1, 2], "label": ["x", "y"]})
    path = write(tmp_path / "x.parquet", table, row_group_size=1, store_schema=False)
    _break_encodings(path, "label")
    assert sb.read_table(path, where=[("number", "=", 5)]).num_rows == 0
    with pytest.raises(FormatError, match="damaged") as caught:
        sb.read_table(path, where=[("label", "=", "y")])
    assert (caught.value.path, caught.value.row_group, caught.value.column) == (
        str(path),
        1,
        "label",
    )


def test_a_footer_says_how_much_memory_it_takes(tmp_path: Path) -> None:
    small = footer_of(write(tmp_path / "1.parquet", customers(100), row_group_size=100))
    large = footer_of(write(tmp_path / "2.parquet", customers(100), row_group_size=1))
    assert small.memory > len(small.plain)
    chunks = 99 * len(small.columns.leaves)
    assert large.memory - small.memory > len(large.plain) - len(small.plain) + 50 * chunks
