"""Rows as a Parquet file, and as values of Python."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.reading.rows.export import python_rows, write_parquet


def test_rows_come_back_from_the_file() -> None:
    table = pa.table({"id": range(10), "t": [str(i) for i in range(10)]})
    file = io.BytesIO()
    assert write_parquet(table.schema, table.to_batches(max_chunksize=3), file) == 10
    assert pq.read_table(io.BytesIO(file.getvalue())).equals(table)


def test_no_rows_are_a_file_with_a_schema() -> None:
    schema = pa.schema([("id", pa.int64())])
    file = io.BytesIO()
    assert write_parquet(schema, [], file) == 0
    assert pq.read_table(io.BytesIO(file.getvalue())).schema == schema


def test_a_time_that_python_does_not_hold_is_a_text() -> None:
    far = pa.array([10**18, 0], pa.timestamp("s", "UTC"))
    rows = list(python_rows(pa.record_batch({"at": far})))
    assert isinstance(rows[0]["at"], str)
    assert rows[1]["at"] == datetime(1970, 1, 1, tzinfo=UTC) or isinstance(rows[1]["at"], str)
