"""Tables of many files: folders' names as columns, schemas that grew, types that were widened."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """A table by country and day, with a null country and a name that needs encoding."""
    folder = tmp_path / "table"
    for country in ("it", "no", "a b/c", None):
        for day in (1, 20):
            name = "__HIVE_DEFAULT_PARTITION__" if country is None else _encoded(country)
            place = folder / f"country={name}" / f"day={day}"
            place.mkdir(parents=True)
            pq.write_table(pa.table({"id": [day, day + 1]}), place / "part-0.parquet")
    return folder


def _encoded(text: str) -> str:
    return text.replace(" ", "%20").replace("/", "%2F")


QUESTIONS = {
    "country = 'it'": pc.field("country") == "it",
    "country = 'a b/c' and id = 20": (pc.field("country") == "a b/c") & (pc.field("id") == 20),
    "country is null": pc.field("country").is_null(),
    "country != 'it'": pc.field("country") != "it",
    "day > 5 or country = 'no'": (pc.field("day") > 5) | (pc.field("country") == "no"),
    "day in (1, 7)": pc.field("day").isin([1, 7]),
}


@pytest.mark.parametrize("where", QUESTIONS)
def test_folders_are_columns_as_pyarrow_has_them(partitioned: Path, where: str) -> None:
    whole = ds.dataset(partitioned, partitioning="hive").to_table()
    found = sb.read_table(partitioned, where=where)
    assert found.schema == whole.schema
    assert found.sort_by(_KEYS).equals(whole.filter(QUESTIONS[where]).sort_by(_KEYS))


_KEYS = [("id", "ascending"), ("day", "ascending"), ("country", "ascending")]


def test_a_folder_that_is_ruled_out_is_not_opened_twice(partitioned: Path) -> None:
    report = sb.explain(partitioned, where="country = 'it' and id = 5000")
    skipped = [g.skipped_by for file in report.files for g in file.row_groups]
    assert sorted(map(str, skipped)) == ["partition value"] * 6 + ["statistics"] * 2


def test_a_path_below_a_folder_does_not_have_its_column(partitioned: Path) -> None:
    assert sb.read_table(partitioned / "country=it").column_names == ["id", "day"]
    file = partitioned / "country=it" / "day=1" / "part-0.parquet"
    assert sb.read_table(file).column_names == ["id", "country", "day"]


def test_columns_that_came_later_are_null_before(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [3], "city": ["rome"]}), tmp_path / "b.parquet")
    found = sb.read_table(tmp_path)
    assert found.to_pydict() == {"id": [1, 2, 3], "city": [None, None, "rome"]}
    assert sb.read_table(tmp_path, where="city is null").column("id").to_pylist() == [1, 2]
    assert sb.read_table(tmp_path, where="city = 'rome'").column("id").to_pylist() == [3]
    assert sb.read_table(tmp_path, where="city != 'oslo'").column("id").to_pylist() == [3]


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [
        (pa.int32(), pa.int64(), 2**40),
        (pa.float32(), pa.float64(), 0.1),
        (pa.int16(), pa.int32(), 70_000),
        (pa.timestamp("ms"), pa.timestamp("us"), datetime(2024, 1, 1, microsecond=7)),
        (pa.decimal128(5, 2), pa.decimal128(9, 4), Decimal("1.2345")),
        (pa.string(), pa.large_string(), "x"),
    ],
    ids=str,
)
def test_a_wider_type_of_another_file_counts(
    tmp_path: Path, narrow: pa.DataType, wide: pa.DataType, value: Any
) -> None:
    some = pa.array([value, None], wide)
    small = pa.array([pa.scalar(v, narrow) for v in _SMALL[narrow]], narrow)
    pq.write_table(pa.table({"x": small}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": some}), tmp_path / "b.parquet")
    sb.add_bloom_filters(tmp_path, columns=["x"])
    whole = pa.chunked_array([small.cast(wide), some])
    for operator, compare in (("=", pc.equal), ("!=", pc.not_equal), (">", pc.greater)):
        for one in [value, *small.cast(wide).to_pylist()]:
            found = sb.read_table(tmp_path, where=[("x", operator, one)]).column("x")
            assert found.equals(whole.filter(compare(whole, pa.scalar(one, wide))))


_SMALL: dict[pa.DataType, list[Any]] = {
    pa.int32(): [1, 2],
    pa.float32(): [0.1, 2.5],
    pa.int16(): [1, 2],
    pa.timestamp("ms"): [datetime(2024, 1, 1), datetime(2025, 1, 1)],
    pa.decimal128(5, 2): [Decimal("1.23"), Decimal("2.00")],
    pa.string(): ["x", "y"],
}


def test_tables_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["text"]}), tmp_path / "b.parquet")
    with pytest.raises(PolicyError, match=r"b\.parquet, column x: it is int64 in .*a\.parquet and"):
        sb.read_table(tmp_path)


def test_nested_columns_come_whole_and_conditions_name_members(tmp_path: Path) -> None:
    rows = [{"zip": f"{i:04}", "tags": [str(i)] * (i % 3)} for i in range(100)]
    table = pa.table({"id": range(100), "address": [*rows[:99], None], "a.b": range(100)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    sb.add_bloom_filters(tmp_path, columns=["address.zip"])
    found = sb.read_table(tmp_path, where="address.zip = '0042'")
    assert found.equals(table.slice(42, 1))
    report = sb.explain(tmp_path, where="address.zip = '0042'")
    assert report.row_groups_read == 1
    assert sb.read_table(tmp_path, where="address.zip is null").column("id").to_pylist() == [99]
    assert sb.read_table(tmp_path, where='"a.b" = 7').column("id").to_pylist() == [7]
    with pytest.raises(PolicyError, match="cannot be compared"):
        sb.read_table(tmp_path, where="address = 'x'")


@pytest.mark.parametrize(
    ("of", "values", "written", "matches"),
    [
        (pa.int64(), [1, 12], ["12", 12, 12.0, Decimal(12), pa.scalar(12, pa.int8())], 1),
        (pa.uint64(), [1, 2**64 - 1], [str(2**64 - 1), 2**64 - 1], 1),
        (pa.float64(), [0.5, 1.5], ["1.5", 1.5, Decimal("1.5"), pa.scalar(1.5, pa.float32())], 1),
        (pa.float64(), [0.0, -0.0, 1.0], ["0", "-0.0", 0, -0.0], 2),
        (pa.decimal128(9, 2), [Decimal("1.50")], ["1.5", 1.5, Decimal("1.5")], 1),
        (pa.date32(), [date(2024, 3, 1)], ["2024-03-01", date(2024, 3, 1)], 1),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2024, 3, 1, 10, tzinfo=UTC)],
            [
                "2024-03-01T10:00:00Z",
                "2024-03-01 12:00:00+02:00",
                "2024-03-01 10:00",
                datetime(2024, 3, 1, 10),
                datetime(2024, 3, 1, 10, tzinfo=UTC),
                pa.scalar(datetime(2024, 3, 1, 10, tzinfo=UTC), pa.timestamp("ns", "UTC")),
            ],
            1,
        ),
        (pa.timestamp("ms"), [datetime(2024, 3, 1)], ["2024-03-01", date(2024, 3, 1)], 1),
        (pa.timestamp("ns"), [datetime(2024, 3, 1)], ["2024-03-01T00:00:00.000000000"], 1),
        (pa.time64("us"), [datetime(2024, 3, 1, 10, 0, 1).time()], ["10:00:01"], 1),
        (pa.binary(), [b"\x00\xff"], ["hex:00ff", b"\x00\xff"], 1),
        (pa.binary(16), [bytes(range(16))], [str(UUID(bytes=bytes(range(16))))], 1),
        (pa.bool_(), [True, False, None], ["true", True], 1),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b"], ["b"], 1),
        (pa.large_string(), ["a", "b"], ["b"], 1),
        (pa.string(), ["7", "b"], ["7"], 1),
    ],
    ids=str,
)
def test_a_value_is_taken_in_the_columns_type(
    tmp_path: Path, of: pa.DataType, values: list[Any], written: list[Any], matches: int
) -> None:
    table = pa.table({"x": pa.array(values, of)})
    pq.write_table(table, tmp_path / "x.parquet")
    if not pa.types.is_boolean(of):
        assert not sb.add_bloom_filters(tmp_path, columns=["x"]).failed
    for value in written:
        found = sb.read_table(tmp_path, where=[("x", "=", value)])
        assert found.num_rows == matches, value
        assert found.schema == table.schema


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (pa.int32(), True),
        (pa.date32(), "2024-03-01T10:00:00"),
        (pa.date32(), datetime(2024, 3, 1, tzinfo=UTC)),
        (pa.int8(), "x"),
        (pa.string(), 7),
        (pa.binary(), 7),
        (pa.timestamp("ms"), "2024-03-01T00:00:00Z"),
        (pa.bool_(), "maybe"),
        (pa.float64(), False),
        (pa.time32("ms"), "25:00"),
    ],
    ids=str,
)
def test_a_value_that_the_column_cannot_hold_is_refused(
    tmp_path: Path, of: pa.DataType, value: object
) -> None:
    pq.write_table(pa.table({"x": pa.array([None], of)}), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="column x: the value is not one that the column can"):
        sb.read_table(tmp_path, where=[("x", "=", value)])


def test_a_number_between_two_of_a_narrower_type_rules_nothing_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([0.1], pa.float32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([0.1], pa.float64())}), tmp_path / "b.parquet")
    assert sb.read_table(tmp_path, where="x > 0.1").num_rows == 1
    assert sb.read_table(tmp_path, where="x = 0.1").num_rows == 1
    assert sb.read_table(tmp_path, where="x != 0.1").num_rows == 1
