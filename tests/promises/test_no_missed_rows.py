"""A filter never makes a query miss a row."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode, customers, write

COLUMNS = {
    "int8": pa.array([-128, 0, 127], pa.int8()),
    "uint64": pa.array([0, 1, 2**64 - 1], pa.uint64()),
    "date": pa.array([0, 19_000, -719_162], pa.date32()),
    "instant": pa.array([datetime(2026, 1, 2, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal("1.10"), Decimal("-0.05"), Decimal("0.00")], pa.decimal128(9, 2)),
    "text": pa.array(["", "é", "\U0001f600"]),
    "bytes": pa.array([b"", b"\x00", b"\xff\x00"]),
    "double": pa.array([1.5, -1e300, 5e-324]),
}


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_a_filter_never_makes_a_query_miss_a_row(tmp_path: Path, mode: Mode) -> None:
    table = customers(1500)
    path = write(tmp_path / "x.parquet", table, mode)
    sb.add_bloom_filters(path, columns=["email", "id"], keys=KEYRING)
    for name in ("email", "id"):
        some = table[name].to_pylist()[::250]
        found = sb.read_table(path, where=[(name, "in", some)], keys=KEYRING)
        assert sorted(found[name].to_pylist()) == sorted(some)


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_hashed_as_they_are_stored(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"x": COLUMNS[name]}))
    sb.add_bloom_filters(path, columns={"x": 1e-6})
    stored = [value.as_py() for value in COLUMNS[name]]
    [file] = sb.probe(path, "x", stored).files
    assert set(file.row_groups[0].verdicts.values()) == {sb.Verdict.MAYBE}
    for value in stored:
        assert value in sb.read_table(path, where=[("x", "=", value)])["x"].to_pylist()


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("asked", [0.0, -0.0])
def test_where_a_reader_looks_for_other_bytes_the_filter_has_those_too(
    tmp_path: Path, stored: float, asked: float
) -> None:
    """The two zeros are equal, and have different bytes."""
    path = write(tmp_path / "x.parquet", pa.table({"x": [stored, 1.5]}))
    sb.add_bloom_filters(path, columns={"x": 1e-6})
    where: Any = [("x", "=", asked)]
    assert sb.read_table(path, where=where).num_rows == 1
    assert pq.read_table(path, filters=where).num_rows == 1
    [file] = sb.probe(path, "x", [asked]).files
    assert set(file.row_groups[0].verdicts.values()) == {sb.Verdict.MAYBE}
