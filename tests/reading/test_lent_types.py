"""Columns whose types Polars or DuckDB lack: the same values in another type, or an error."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.reading.lent_types import Lent
from testing.tables import Mode, write

PRICE = Decimal("1.50")


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        ([PRICE, None], pa.decimal256(5, 2), pa.decimal128(5, 2)),
        ([[PRICE], None], pa.list_(pa.decimal256(38, 2)), pa.list_(pa.decimal128(38, 2))),
        ([1, None], pa.timestamp("us", "+05:30"), pa.timestamp("us", "UTC")),
        ([1, None], pa.timestamp("us", "Europe/Rome"), pa.timestamp("us", "Europe/Rome")),
        ([0.5, None], pa.float16(), pa.float16()),
        (["a", None], pa.string_view(), pa.string_view()),
    ],
)
def test_polars_has_the_values(
    values: list[Any], kind: pa.DataType, wanted: pa.DataType, tmp_path: Path
) -> None:
    rows = pa.table({"x": pa.array(values, kind)})
    assert Lent.to_polars(rows.schema).schema.field("x").type == wanted
    with sb.open_table(write(tmp_path / "x.parquet", rows)) as table:
        found = table.scan_polars().collect()
    assert found["x"].to_list() == rows["x"].to_pylist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([PRICE, None], pa.decimal256(5, 2)),
        ([{"a": PRICE}, None], pa.struct([("a", pa.decimal256(38, 2))])),
        ([[("k", 0.5)], None], pa.map_(pa.string(), pa.float16())),
        ([[0.5, 1.0], None], pa.list_(pa.float16(), 2)),
        ([[1, 2], None], pa.list_(pa.int32(), 2)),
        ([1, None], pa.timestamp("us", "+05:30")),
        ([1000, None], pa.time32("ms")),
        ([1, None], pa.time64("us")),
        ([1001, None], pa.time64("ns")),
        ([[1], None], pa.list_(pa.time64("us"))),
        ([{"a": 1}, None], pa.struct([("a", pa.time32("s"))])),
        ([2**63 - 1, -(2**63 - 1)], pa.timestamp("us")),
    ],
)
def test_sql_has_the_types_and_values_of_duckdb(
    values: list[Any], kind: pa.DataType, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"x": pa.array(values, kind)}))
    query = "SELECT typeof(x) AS of, x, x::VARCHAR AS text FROM t"
    plain = duckdb.connect()
    plain.execute("SET TimeZone = 'UTC'")
    plain.execute(f"CREATE VIEW t AS FROM '{path}'")
    wanted = plain.sql(query).to_arrow_table()
    found = sb.sql(query, {"t": path})
    assert (found["of"], found["text"]) == (wanted["of"], wanted["text"])
    # DuckDB has another name for UTC.
    assert found["x"].equals(wanted["x"].cast(found["x"].type))


def test_times_are_written_as_read_writes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"x": pa.array([1000], pa.time32("ms"))}))
    assert sb.sql(f"SELECT x FROM '{path}'")["x"].type == pa.time64("us")
    later = f"SELECT x + INTERVAL '1 hour' AS later FROM '{path}' WHERE x = '00:00:01'"
    assert str(sb.sql(later)["later"][0]) == "01:00:01"


@pytest.mark.parametrize("nested", [False, True])
def test_durations_with_nanoseconds_are_not_cut(tmp_path: Path, nested: bool) -> None:
    kind = pa.list_(pa.duration("ns")) if nested else pa.duration("ns")
    values = [[1_000], [1_001]] if nested else [1_000, 1_001]
    rows = pa.table({"id": [1, 2], "x": pa.array(values, kind)})
    path = write(tmp_path / "x.parquet", rows)
    assert sb.sql(f"SELECT id FROM '{path}'").num_rows == 2
    assert sb.sql(f"SELECT x FROM '{path}' WHERE id = 1").num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match="column x has durations with nano") as caught:
        sb.sql(f"SELECT x FROM '{path}'")
    assert "1001" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (pa.list_view(pa.int32()), "list_view"),
        (pa.list_(pa.list_view(pa.int32())), "list_view"),
        (pa.decimal256(50, 2), "more than 38 digits"),
    ],
)
def test_what_has_no_type_is_refused_by_name(kind: pa.DataType, what: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"id": [1], "x": pa.nulls(1, kind)}), Mode.PLAIN)
    with sb.open_table(path) as table:
        assert table.sql("SELECT id FROM self").num_rows == 1
        assert table.scan_polars().select("id").collect().height == 1
        with pytest.raises(UnsupportedFeatureError, match=f"column x has .*{what}"):
            table.sql("SELECT * FROM self")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i, iv FROM t ORDER BY i",
        "SELECT i FROM t WHERE iv > INTERVAL '40 days' ORDER BY i",
        "SELECT i FROM t WHERE iv IS NULL",
        "SELECT TIMESTAMP '2026-01-01' + iv AS at FROM t ORDER BY i",
    ],
)
def test_intervals_of_parquet_are_intervals(query: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    plain = duckdb.connect()
    plain.execute(
        f"""
        COPY (SELECT i, i * INTERVAL '1 month' + i * INTERVAL '26 hours' AS iv,
                     {{'a': INTERVAL '1 day'}} AS s FROM range(9) r(i)
              UNION ALL SELECT 9, NULL, NULL) TO '{path}'
        """
    )
    plain.execute(f"CREATE VIEW t AS FROM '{path}'")
    assert sb.sql(query, {"t": path}).equals(plain.sql(query).to_arrow_table())
