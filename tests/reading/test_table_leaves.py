"""The columns of a table, each once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.reading.table_leaves import table_leaves
from testing import delta_logs as logs


def test_a_column_of_several_files_is_there_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "s": [{"b": 1}]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"c": [1], "a": [1]}), tmp_path / "1.parquet")
    assert [leaf.name for leaf in table_leaves(tmp_path)] == ["a", "s.b", "c"]


def test_of_a_delta_table_live_files_count_and_logical_names(tmp_path: Path) -> None:
    for name, stored in {"old": ["gone"], "live": ["col-1", "b"]}.items():
        rows = pa.table({column: [1] for column in stored})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    columns = [
        logs.column(
            name, **{"delta.columnMapping.physicalName": to, "delta.columnMapping.id": number}
        )
        for number, (name, to) in enumerate({"id": "col-1", "b": "b"}.items(), 1)
    ]
    metadata = logs.metadata(*columns)
    metadata["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
    logs.commit(tmp_path, 0, logs.protocol("columnMapping"), metadata, logs.add("live.parquet"))
    assert [leaf.name for leaf in table_leaves(tmp_path)] == ["id", "b"]
