"""Units: row groups that are decoded together, up to a size, and those with ranges alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.reading import Question, ReadRequest, Table
from secure_bloom.reading.rows import units as units_module
from secure_bloom.reading.rows.file_reader import Parts
from secure_bloom.reading.rows.units import Unit, tables_of
from testing.tables import KEYRING, Mode, customers, write

ROWS, GROUP = 600, 100


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(ROWS), Mode.ENCRYPTED, row_group_size=GROUP)


def units_of(lake: Path, **options: Any) -> list[Unit]:
    read = Table(ReadRequest(str(lake), keys=KEYRING)).ask(Question(**options))
    return list(read._units())


def test_small_row_groups_are_one_unit(lake: Path) -> None:
    (unit,) = units_of(lake)
    assert [group.row_group for group in unit.row_groups] == [0, 1, 2, 3, 4, 5]


def test_a_unit_ends_before_it_is_too_large(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = units_of(lake)
    size = whole.reader.plan.footer.row_groups[0].total_byte_size
    monkeypatch.setattr(units_module, "_UNIT_BYTES", 2 * size + size // 2)
    assert [len(unit.row_groups) for unit in units_of(lake)] == [2, 2, 2]


def test_a_row_group_with_ranges_is_alone(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.parquet",
        pa.table({"id": range(ROWS)}),
        Mode.PLAIN,
        row_group_size=GROUP,
        write_page_index=True,
        data_page_size=64,
        write_batch_size=10,
        use_dictionary=False,
    )
    found = units_of(path, where=[("id", ">=", 150)])
    assert [[group.row_group for group in unit.row_groups] for unit in found] == [[1], [2, 3, 4, 5]]
    assert found[0].row_groups[0].ranges is not None


def test_a_unit_without_matches_gives_no_rows(lake: Path) -> None:
    (unit,) = units_of(lake)
    assert unit.narrowed() is not None
    rows = unit.read()
    assert isinstance(rows, pa.Table)
    assert rows.num_rows == ROWS


def test_parts_are_closed_when_they_are_left() -> None:
    ended = []

    def row_groups() -> Any:
        try:
            yield iter([pa.table({"a": [1]}), pa.table({"a": [2]})])
        finally:
            ended.append(True)

    taken = tables_of(Parts(row_groups()))
    assert next(taken).num_rows == 1
    taken.close()
    assert ended == [True]
