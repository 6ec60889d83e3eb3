"""What a log says of columns and files, beside what a bare folder says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes import list_tables
from secure_bloom.reading.table.table_state import FileSchema, UnitedSchema, table_state, unite
from testing.delta_logs import add, column, commit, inline_vector, start


def test_a_bare_folder_says_nothing_but_its_name(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "day=1/x.parquet")
    state = table_state(list_tables([str(tmp_path)]), [str(tmp_path)])
    assert state.partitions == [{"day": "1"}]
    assert state.partition_fields == [pa.field("day", pa.int32())]
    assert (state.names, state.order, state.deleted(0)) == (None, (), None)
    schema = pa.schema({"id": pa.int64()})
    assert state.with_columns_of_log(state.columns_of(schema)) == schema


def test_a_log_tells_columns_partitions_and_deleted_rows(tmp_path: Path) -> None:
    columns = column("id"), column("day", "date"), column("new", "string")
    commit(
        tmp_path,
        0,
        *start(*columns, partitions=["day"], features=["deletionVectors"]),
        add("a", partitionValues={"day": "2026-01-31"}),
        add("b", partitionValues={"day": None}, deletionVector=inline_vector([3])),
    )
    state = table_state(list_tables([str(tmp_path)]), [str(tmp_path)])
    assert state.partitions == [{"day": "2026-01-31"}, {"day": None}]
    assert state.partition_fields == [pa.field("day", pa.date32())]
    assert state.deleted(0) is None
    deleted = state.deleted(1)
    assert deleted is not None
    assert deleted.positions(10).tolist() == [3]
    stored = state.columns_of(pa.schema({"gone": pa.int8(), "id": pa.int32()}))
    assert stored == pa.schema({"id": pa.int32()})
    wanted = pa.schema({"id": pa.int32(), "day": pa.date32(), "new": pa.string()})
    assert state.with_columns_of_log(stored) == wanted


def united(*schemas: pa.Schema) -> UnitedSchema:
    return unite(FileSchema(path=str(n), arrow=schema) for n, schema in enumerate(schemas))


def test_columns_of_all_files_stand_in_the_order_of_their_appearance() -> None:
    one = pa.schema([("a", pa.int64()), ("b", pa.string())])
    other = pa.schema([("c", pa.int64()), ("a", pa.int64())])
    assert united(one, other).arrow.names == ["a", "b", "c"]


def test_a_type_that_grew_is_the_larger_one() -> None:
    small, large = pa.schema([("a", pa.int32())]), pa.schema([("a", pa.int64())])
    assert united(small, large).arrow.field("a").type == pa.int64()


def test_types_with_nothing_in_common_name_a_file() -> None:
    text, number = pa.schema([("a", pa.string())]), pa.schema([("a", pa.int64())])
    found = united(text, number)
    found.check(["b"])
    with pytest.raises(SecureBloomError, match="column a: it is string in 0 and int64 here"):
        found.check(["b", "a"])
    assert found.readable.names == []


def test_a_name_that_a_file_has_twice_is_an_error_of_who_asks_for_it() -> None:
    twice = pa.schema([("a", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
    for found in (united(twice), united(twice, pa.schema([("c", pa.int64())]))):
        assert found.readable.field("b").type == pa.int64()
        with pytest.raises(SecureBloomError, match="two columns of that name"):
            found.check(["a"])


INSTANTS = [datetime(2024, 1, 1, hour) for hour in range(6)]
AT_3 = "2024-01-01T03:00:00"


def _write(path: Path, kind: pa.DataType, wrap: Callable[[object], object], *, int96: bool) -> None:
    instants = [at.replace(tzinfo=UTC) if getattr(kind, "tz", None) else at for at in INSTANTS]
    column = pa.array([wrap(at) for at in instants], _wrapped(kind, wrap))
    table = pa.table({"id": list(range(6)), "at": column})
    pq.write_table(table, path, use_deprecated_int96_timestamps=int96, store_schema=False)


def _wrapped(kind: pa.DataType, wrap: Callable[[object], object]) -> pa.DataType:
    if isinstance(wrap(0), list):
        return pa.list_(kind)
    return pa.struct({"x": kind}) if isinstance(wrap(0), dict) else kind


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("int96_first", [False, True])
@pytest.mark.parametrize(
    "wrap", [lambda at: at, lambda at: {"x": at}, lambda at: [at]], ids=["flat", "member", "list"]
)
def test_int96_and_timestamps_are_one_column(
    tmp_path: Path,
    unit: str,
    zone: str | None,
    int96_first: bool,
    wrap: Callable[[object], object],
) -> None:
    kinds = [(pa.timestamp("us"), True), (pa.timestamp(unit, zone), False)]
    for n, (kind, int96) in enumerate(kinds if int96_first else kinds[::-1]):
        _write(tmp_path / f"{n}.parquet", kind, wrap, int96=int96)
    sb.add_bloom_filters(tmp_path, columns=["id"])
    rows = sb.read_table(tmp_path)
    finer = "ns" if unit == "ns" else "us"
    assert rows.schema.field("at").type == _wrapped(pa.timestamp(finer, zone), wrap)
    if wrap(0) == 0:
        wanted = [at.replace(tzinfo=UTC if zone else None) for at in INSTANTS]
        assert rows.column("at").cast(pa.timestamp("us", zone)).to_pylist() == wanted * 2
        for condition, ids in (("=", [3]), ("<", [0, 1, 2]), (">=", [3, 4, 5])):
            found = sb.read_table(tmp_path, where=[("at", condition, AT_3)], columns=["id"])
            assert found.column("id").to_pylist() == ids * 2
        theirs = f"SELECT count(*) FROM read_parquet('{tmp_path}/*.parquet', union_by_name=true)"
        with duckdb.connect() as database:
            assert database.execute(theirs).fetchall() == [(12,)]


def test_a_column_that_nobody_asks_for_fails_no_read(tmp_path: Path) -> None:
    for n, values in enumerate((["a"], [1.5], [datetime(2024, 1, 1)])):
        pq.write_table(pa.table({"id": [n], "x": values}), tmp_path / f"{n}.parquet")
    assert sb.read_table(tmp_path, columns=["id"]).num_rows == 3
    assert sb.read_table(tmp_path, where="id = 1", columns=["id"]).num_rows == 1
    for asked in ({}, {"columns": ["x"]}, {"columns": ["id"], "where": "x = 1.5"}):
        with pytest.raises(SecureBloomError, match="no type has all values of both"):
            sb.read_table(tmp_path, **asked)
    with sb.open_table(tmp_path) as table:
        assert table.scan_polars().select("id").collect().height == 3


def test_a_date_is_midnight_beside_local_timestamps(tmp_path: Path) -> None:
    """Delta and Iceberg let a table's column change so."""
    pq.write_table(pa.table({"at": [date(2024, 1, 1)]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"at": INSTANTS}), tmp_path / "1.parquet")
    assert sb.read_table(tmp_path, where="at = '2024-01-01T00:00:00'").num_rows == 2
    assert sb.read_table(tmp_path, where="at < '2024-01-01T02:00:00'").num_rows == 3
