"""A data file for tests of indexes, and reading its index."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
