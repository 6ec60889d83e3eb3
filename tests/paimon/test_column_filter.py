"""The values of one key of a map: found beside it, and nowhere else."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.paimon import DataType, hash_value
from secure_bloom.paimon.column_filter import (
    BuildReport,
    ColumnReport,
    IndexOptions,
    IndexReport,
    column_hashes,
    read_map_values,
)
from secure_bloom.parquet.column_values import read_entries
from testing.surgery import opened
from testing.tables import Mode, write

MAPS = pa.table(
    {
        "m": pa.array(
            [[("a", "1"), ("b", "2")], [], None, [("b", None), ("a", "3")], [("a", "1")]],
            pa.map_(pa.string(), pa.string()),
        )
    }
)
KEY, VALUE = "m.key_value.key", "m.key_value.value"


def values(path: Path, key: str) -> list[bytes]:
    with opened(path) as it:
        found = read_map_values(it.file, it.chunk(0, KEY), it.chunk(0, VALUE), key)
        return [value for part in found for value in part.to_pylist()]


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_values_stand_beside_their_key(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", MAPS, mode)
    assert values(path, "a") == [b"1", b"3", b"1"]
    assert values(path, "b") == [b"2"]
    assert values(path, "c") == []


def test_keys_and_values_that_are_not_as_many_are_refused(tmp_path: Path) -> None:
    table = pa.table({"k": [["x", "y"]], "v": [["1"]]})
    with opened(write(tmp_path / "x.parquet", table)) as it:
        key, value = (it.chunk(0, leaf.name) for leaf in it.footer.leaves)
        with pytest.raises(FormatError, match="a map has 2 keys and 1 values") as caught:
            list(read_map_values(it.file, key, value, "x"))
    assert (caught.value.row_group, caught.value.column) == (0, value.leaf.name)


DAY = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROS = (DAY - EPOCH) // datetime.timedelta(microseconds=1)


def hashes(path: Path) -> list[int]:
    with opened(path, None) as it:
        chunk = it.chunk(0, "x")
        entries = read_entries(it.file, chunk).entries
        return [h for part in entries for h in column_hashes(chunk.leaf, part).tolist()]


@pytest.mark.parametrize(
    ("values", "arrow", "paimon", "hashed"),
    [
        ([7, -7], pa.int32(), "INT", [7, -7]),
        ([7, -(2**40)], pa.int64(), "BIGINT", [7, -(2**40)]),
        (["", "a", "ångström"], pa.string(), "STRING", ["", "a", "ångström"]),
        ([b"\0\xff"], pa.binary(), "BYTES", [b"\0\xff"]),
        ([1.5, -0.0, float("nan")], pa.float64(), "DOUBLE", [1.5, -0.0, float("nan")]),
        ([1.5], pa.float32(), "FLOAT", [1.5]),
    ],
)
def test_in_bulk_as_one_at_a_time(
    tmp_path: Path, values: list[Any], arrow: pa.DataType, paimon: str, hashed: list[Any]
) -> None:
    kind = DataType.parse(paimon)
    pq.write_table(pa.table({"x": pa.array(values, arrow)}), tmp_path / "x")
    assert hashes(tmp_path / "x") == [hash_value(kind, value) for value in hashed]


@pytest.mark.parametrize("int96", [False, True])
def test_an_instant_has_one_hash_in_either_stored_type(tmp_path: Path, int96: bool) -> None:
    table = pa.table({"x": pa.array([DAY], pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "x", use_deprecated_int96_timestamps=int96)
    millis, rest = divmod(MICROS, 1000)
    wanted = hash_value(DataType.parse("TIMESTAMP(6)"), (millis, rest * 1000))
    assert hashes(tmp_path / "x") == [wanted]


@pytest.mark.parametrize(
    "options",
    [
        {"items": 0},
        {"items": -1},
        {"items": True},
        {"items": 1.5},
        {"fpp": 0},
        {"fpp": 1},
        {"fpp": "x"},
    ],
)
def test_options_that_make_no_filter_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        IndexOptions(**options)


def _column(name: str, shows: str | None) -> ColumnReport:
    return ColumnReport(
        column=name,
        items=1,
        values=1,
        bytes=1,
        hash_functions=1,
        fpp_requested=0.1,
        fpp=0.1,
        encrypted=shows is not None,
        shows=shows,
    )


def test_what_an_index_shows_is_noted_once_for_each_column() -> None:
    columns = (_column("b", "whether"), _column("a", "whether"), _column("c", None))
    files = tuple(IndexReport(path=path, status="built", columns=columns) for path in ("x", "y"))
    assert BuildReport(files=files).notes == ("column a: whether", "column b: whether")


def test_failed_files_are_told() -> None:
    files = (
        IndexReport(path="x", status="built"),
        IndexReport(path="y", status="failed", error="damaged"),
    )
    assert [file.path for file in BuildReport(files=files).failed] == ["y"]
