"""Hashes of a whole column are those of its values one at a time."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.paimon import DataType, hash_value
from secure_bloom.paimon.column_hashes import column_hashes
from secure_bloom.parquet.column_values import read_entries
from tests.surgery import opened

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
