"""Rows of tasks become Arrow batches in the schema that Spark is told."""

from __future__ import annotations

import pyarrow as pa

from secure_bloom.spark.row_schema import RowSchema

SCHEMA = RowSchema({"path": "string", "rows": "long", "notes": "array<string>"})


def test_spark_and_arrow_are_told_the_same() -> None:
    assert SCHEMA.ddl == "path string, rows long, notes array<string>"
    assert SCHEMA.arrow == pa.schema(
        [("path", pa.string()), ("rows", pa.int64()), ("notes", pa.list_(pa.string()))]
    )


def test_rows_have_a_value_or_null_for_every_column() -> None:
    rows = [SCHEMA.row({"path": "a", "other": 1}), SCHEMA.row({"notes": ("x",), "rows": 3})]
    assert SCHEMA.table(rows).to_pylist() == [
        {"path": "a", "rows": None, "notes": None},
        {"path": None, "rows": 3, "notes": ["x"]},
    ]
    assert SCHEMA.table([]).schema == SCHEMA.arrow


def test_a_row_of_a_task_is_of_plain_types() -> None:
    assert SCHEMA.struct == "struct<path: string, rows: long, notes: array<string>>"
    assert SCHEMA.plain(("a", True, ("x", "y"))) == ("a", 1, ["x", "y"])
    assert SCHEMA.plain((None, None, None)) == (None, None, None)
