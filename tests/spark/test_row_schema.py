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


def test_the_rows_of_each_item_are_one_list() -> None:
    rows = [[("a", 1, ()), ("b", 2, None)], [], [("c", 3, ("x", "y"))]]
    lists = SCHEMA.lists(rows)
    assert SCHEMA.struct == "struct<path: string, rows: long, notes: array<string>>"
    assert lists.type == pa.list_(pa.struct(list(SCHEMA.arrow)))
    assert [[row["path"] for row in some] for some in lists.to_pylist()] == [["a", "b"], [], ["c"]]
    assert SCHEMA.lists([]).to_pylist() == []
