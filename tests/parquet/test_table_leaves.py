"""The columns of a table, each once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.parquet.table_leaves import table_leaves


def test_a_column_of_several_files_is_there_once(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "s": [{"b": 1}]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"c": [1], "a": [1]}), tmp_path / "1.parquet")
    assert [leaf.name for leaf in table_leaves(tmp_path)] == ["a", "s.b", "c"]
