"""A read tells of its table, and of the rows that were taken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.reading import ReadRequest, TableRead


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def test_a_read_is_told_of_when_rows_were_taken(path: Path) -> None:
    read = TableRead(ReadRequest(path, where="n > 1", columns=["n"], limit=1))
    assert [batch.to_pydict() for batch in read.batches()] == [{"n": [2]}]
    assert read.report().rows == 1
    assert read.paths == [str(path)]
    assert read.schema.names == ["n"]
