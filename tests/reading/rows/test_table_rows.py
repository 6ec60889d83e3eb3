"""Decoded columns take the types of the table; what a file lacks is null."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb


def test_columns_of_files_become_those_of_the_table(tmp_path: Path) -> None:
    for day, columns in (("1", {"a": pa.array([1], pa.int32())}), ("2", {"a": [2], "b": ["x"]})):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table(columns), tmp_path / f"day={day}" / "0.parquet")
    rows = sb.read_table(tmp_path)
    assert rows.schema.types == [pa.int64(), pa.string(), rows.schema.field("day").type]
    assert rows.select(["a", "b"]).to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
    assert [str(day) for day in rows.column("day").to_pylist()] == ["1", "2"]
