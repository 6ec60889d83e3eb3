"""`= 0.0` finds both zeros, in readers that compare numbers and hash bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

#: Row groups that hold the one zero, the other, both and none.
GROUPS: list[Any] = [
    [-0.0, 1.5],
    [0.0, 1.5],
    [-0.0, 0.0],
    [1.5, -1.5],
    [float("nan"), None],
]
LITERALS = ["0.0", "-0.0", "0", "0::DOUBLE", "'-0.0'::FLOAT"]


@pytest.fixture(params=["float16", "float32", "float64"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Pairs of values in row groups of their own, without dictionary."""
    dtype = np.dtype(request.param)
    kind = pa.from_numpy_dtype(dtype)
    path = tmp_path / "x.parquet"
    with pq.ParquetWriter(path, pa.schema({"x": kind}), use_dictionary=False) as writer:
        for group in GROUPS:
            array = pa.array([None if v is None else dtype.type(v) for v in group], kind)
            writer.write_table(pa.table({"x": array}))
    return path


def _duckdb(path: Path) -> list[int]:
    return [
        duckdb.execute(f"SELECT count(*) FROM '{path}' WHERE x = {literal}").fetchall()[0][0]
        for literal in LITERALS
    ]


def _polars(path: Path) -> list[int]:
    scan = pl.scan_parquet(path)
    return [
        scan.filter(pl.col("x") == zero).select(pl.len()).collect().item() for zero in (0.0, -0.0)
    ]


def test_a_zero_is_found_by_either_sign(path: Path) -> None:
    sb.add_bloom_filters(path, columns={"x": sb.BloomFilterOptions(fpp=0.0001)})
    assert _duckdb(path) == [4] * len(LITERALS)
    assert _polars(path) == [4, 4]
    for zero in (0.0, -0.0):
        groups = sb.probe(path, "x", [zero]).files[0].row_groups
        assert [group.verdicts[zero] for group in groups] == ["maybe"] * 3 + ["absent"] * 2


def test_nan_is_found_as_before(path: Path) -> None:
    query = f"SELECT count(*) FROM '{path}' WHERE x = 'nan'"
    before = duckdb.execute(query).fetchall()
    sb.add_bloom_filters(path, columns=["x"])
    assert duckdb.execute(query).fetchall() == before
