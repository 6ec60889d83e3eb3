"""What planning costs, and what it never changes: footers that are decoded as far as asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures import trees
from secure_bloom.reading.table.footer import FileFooter, read_footer
from secure_bloom.reading.table.footer_scan import FooterScanner
from secure_bloom.storage import CountedFile, open_input
from tests.tables import KEYRING, Mode, customers, write

ROWS = 200


def _footer(path: Path) -> FileFooter:
    with open_input(str(path)) as file:
        return read_footer(CountedFile(file), KeyResolver(KEYRING), FooterScanner())


def _lake(folder: Path, mode: Mode) -> Path:
    for part in range(3):
        write(folder / f"{part}.parquet", customers(ROWS, part), mode, row_group_size=50)
    report = sb.add_bloom_filters(folder, columns=["email", "id"], keys=KEYRING)
    assert not report.failed
    return folder


@pytest.mark.parametrize("mode", list(Mode))
def test_without_the_librarys_c_code_the_same_rows_are_read(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, mode)
    where = [("email", "in", ["user7@example.com", "nobody"]), ("id", "<", 100)]
    rows = sb.read_table(lake, where=where, keys=KEYRING)
    assert rows.num_rows == 3
    monkeypatch.setattr(trees, "HAS_C_CODE", False)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows


@pytest.mark.parametrize("has_compiled_code", [False])
@pytest.mark.parametrize("mode", list(Mode))
def test_only_chunks_of_the_predicates_columns_are_decoded(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, mode)
    decoded: list[int] = []
    read = trees.StructReader.read

    def counted(self: trees.StructReader, start: int, record: object, spec: object) -> int:
        if type(record).__name__ == "ColumnChunk":
            decoded.append(start)
        return read(self, start, record, spec)

    monkeypatch.setattr(trees.StructReader, "read", counted)
    where = [("email", "=", "nobody@nowhere")]
    assert sb.read_table(lake, where=where, keys=KEYRING).num_rows == 0
    assert len(decoded) == 3 * (ROWS // 50)


def _break_encodings(path: Path, column: str) -> None:
    """Make a list of the column's last chunk one of another type; the structure stays whole."""
    plain, content = _footer(path).plain, path.read_bytes()
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
    small = _footer(write(tmp_path / "1.parquet", customers(100), row_group_size=100))
    large = _footer(write(tmp_path / "2.parquet", customers(100), row_group_size=1))
    assert small.memory > len(small.plain)
    chunks = 99 * len(small.columns.leaves)
    assert large.memory - small.memory > len(large.plain) - len(small.plain) + 50 * chunks


def test_footers_that_are_not_kept_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, Mode.ENCRYPTED)
    where = [("email", "=", "user7@example.com")]
    rows = sb.read_table(lake, where=where, keys=KEYRING)
    monkeypatch.setattr("secure_bloom.reading.table.table_files._KEPT_FOOTERS", 0)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows
    assert rows.num_rows == 3
