"""Rows of a file: the predicate's columns first, then the others where rows match."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secure_bloom.reading import Question, ReadRequest, Table
from secure_bloom.reading.pruning.plan import RowGroupPlan
from secure_bloom.reading.rows import column_decoder
from secure_bloom.reading.rows.file_reader import FileReader, Parts, _others_than, _runs_of
from secure_bloom.reading.rows.units import tables_of
from testing.tables import KEYRING, Mode, customers, write

ROWS, GROUP = 600, 200
TABLE = customers(ROWS)


@pytest.fixture(params=[Mode.PLAIN, Mode.ENCRYPTED])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", TABLE, request.param, row_group_size=GROUP)


def reader_of(lake: Path, **options: Any) -> FileReader:
    (unit,) = Table(ReadRequest(str(lake), keys=KEYRING)).ask(Question(**options))._units()
    return unit.reader


def rows_of(reader: FileReader) -> pa.Table:
    return pa.concat_tables(tables_of(reader.read(reader.plan.surviving)))


def is_open(path: Path) -> bool:
    return path in [link.resolve() for link in Path("/proc/self/fd").iterdir()]


@pytest.mark.parametrize("most", [1, 30, 599], ids=["few match", "some match", "nearly all match"])
def test_the_rows_are_those_of_a_full_scan(lake: Path, most: int) -> None:
    reader = reader_of(lake, where=[("id", "!=", ROWS), ("id", "<", most)])
    wanted = TABLE.filter(pc.field("id") < most)
    assert rows_of(reader).equals(wanted)
    found = [group.rows_found for group in reader.row_groups if group.skipped_by is None]
    assert sum(it or 0 for it in found) == most


def test_columns_that_only_the_condition_needs_are_not_in_the_rows(lake: Path) -> None:
    reader = reader_of(lake, where=[("id", ">=", 590)], columns=["city"])
    wanted = TABLE.filter(pc.field("id") >= 590).select(["city"])
    assert rows_of(reader).equals(wanted)


def test_in_parts_the_rows_and_their_counts_are_the_same(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secure_bloom.reading.rows.file_reader.harmless_size", lambda: 1 << 14)
    monkeypatch.setattr(column_decoder, "harmless_size", lambda: 1 << 14)
    reader = reader_of(lake, where=[("id", ">", 450), ("id", "<", 460)])
    found = reader.read(reader.plan.surviving)
    assert isinstance(found, Parts)
    tables = list(tables_of(found))
    assert len(tables) > 1
    wanted = TABLE.filter((pc.field("id") > 450) & (pc.field("id") < 460))
    assert pa.concat_tables(tables).equals(wanted)
    assert sum(group.rows_found or 0 for group in reader.row_groups) == 9


def test_the_file_is_open_from_the_first_unit_to_the_last_one(lake: Path) -> None:
    reader = reader_of(lake)
    first, *others = reader.plan.surviving
    reader.units_left = 2
    assert not is_open(lake)
    reader.read([first])
    assert is_open(lake)
    reader.read(others)
    assert not is_open(lake)


def test_rows_that_the_table_has_no_more_are_told_by_their_positions() -> None:
    rows = np.arange(10, 16)
    assert _others_than(np.array([3, 11, 15, 99]), rows).tolist() == [1, 0, 1, 1, 1, 0]
    assert _others_than(np.array([], np.int64), rows).all()


def test_rows_among_decoded_ones_are_ranges_of_the_row_group() -> None:
    group = RowGroupPlan(row_group=0, rows=100, ranges=((10, 13), (50, 53)))
    assert _runs_of(group, np.array([0, 1, 2, 3, 5])) == [(10, 13), (50, 51), (52, 53)]
