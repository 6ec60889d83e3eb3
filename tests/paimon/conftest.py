"""A data file for tests of indexes, and reading its index."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon

ROWS = 500


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    """Ids 0 to 499 in five row groups, names that stand twice each, a map, a column of nulls."""
    pairs = [
        None if i % 5 == 0 else [("a", f"v{i % 7}"), ("b", None if i % 2 else "w")]
        for i in range(ROWS)
    ]
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "name": [f"n{i // 2}" for i in range(ROWS)],
            "m": pa.array(pairs, pa.map_(pa.string(), pa.string())),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "dotted.name": pa.array(range(ROWS), pa.int32()),
            "list": pa.array([[1]] * ROWS),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=100)
    return tmp_path / "data.parquet"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three files of 100 ids each, all but the last with an index."""
    for part in range(3):
        ids = range(100 * part, 100 * part + 100)
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "name": [f"n{i}" for i in ids],
                "amount": pa.array(ids, pa.decimal128(9, 2)),
                "score": pa.array([float(i % 3) for i in ids]),
            }
        )
        pq.write_table(table, tmp_path / f"{part}.parquet")
        if part < 2:
            options = paimon.IndexOptions(fpp=1e-6)
            columns = dict.fromkeys(["id", "name", "score"], options)
            paimon.build_index(tmp_path / f"{part}.parquet", columns)
    return tmp_path


def verdicts(lake: Path, where: object) -> list[str]:
    return [str(file.verdict) for file in paimon.probe(lake, where).files]


@pytest.fixture
def evolved(tmp_path: Path) -> Path:
    """A table whose columns grew: an older file, and one with larger types."""
    old = {
        "id": pa.array([1, 2], pa.int32()),
        "ts": pa.array([1, 2], pa.timestamp("ms")),
        "real": pa.array([1.5, 2.5], pa.float32()),
        "other": ["a", "b"],
        "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
    }
    new = {
        "id": pa.array([3_000_000_000, 2], pa.int64()),
        "ts": pa.array([1, 2000], pa.timestamp("us")),
        "real": pa.array([1e300, 2.5]),
        "other": [1, 2],
        "fixed": pa.array([b"abc", b"cd"]),
    }
    for name, columns in (("a", old), ("b", new)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table(columns), path)
        paimon.build_index(path, dict.fromkeys(columns, paimon.IndexOptions(fpp=1e-9)))
    return tmp_path
