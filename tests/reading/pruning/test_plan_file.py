"""What planning costs, and what it never changes: footers that are decoded as far as asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.parquet.structures import records
from testing.tables import KEYRING, Mode, customers, write

ROWS = 200


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
    monkeypatch.setattr(records, "HAS_C_CODE", False)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows


@pytest.mark.parametrize("has_extension", [False])
@pytest.mark.parametrize("mode", list(Mode))
def test_only_chunks_of_the_predicates_columns_are_decoded(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, mode)
    decoded: list[int] = []
    read = records.StructReader.read

    def counted(self: records.StructReader, start: int, record: object) -> int:
        if type(record).__name__ == "ColumnChunk":
            decoded.append(start)
        return read(self, start, record)

    monkeypatch.setattr(records.StructReader, "read", counted)
    where = [("email", "=", "nobody@nowhere")]
    assert sb.read_table(lake, where=where, keys=KEYRING).num_rows == 0
    assert len(decoded) == 3 * (ROWS // 50)


def test_footers_that_are_not_kept_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _lake(tmp_path, Mode.ENCRYPTED)
    where = [("email", "=", "user7@example.com")]
    rows = sb.read_table(lake, where=where, keys=KEYRING)
    monkeypatch.setattr("secure_bloom.reading.table.table_files._KEPT_FOOTERS", 0)
    assert sb.read_table(lake, where=where, keys=KEYRING) == rows
    assert rows.num_rows == 3
