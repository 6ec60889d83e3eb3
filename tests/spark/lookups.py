"""Spark's conditions that look a value of any type up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from testing.columns import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What conditions on nested columns are called here where DuckDB calls them otherwise.
_IN_SPARK = {
    "list_contains(list_transform(x.a, lambda y: y.b), {})": "array_contains(x.a.b, {})",
    "list_contains(x, {})": "array_contains(x, {})",
    "list_contains(map_values(x), {})": "array_contains(map_values(x), {})",
    "map_contains(x, {})": "map_contains_key(x, {})",
}


def lookup(table: DataFrame, column: Column, number: int, name: str = "x") -> DataFrame:
    """The rows that hold a value of ``column`` under ``name``."""
    text = column.written(number)
    if column.sql == "BLOB":
        literal = f"X'{text.removeprefix('hex:')}'"
    else:
        literal = f"cast('{text}' AS {_value_type(table, column, name)})"
    condition = _IN_SPARK.get(column.lookup, column.lookup)
    return table.where(re.sub(r"\bx\b", name, condition).format(literal))


def _value_type(table: DataFrame, column: Column, name: str) -> str:
    """What Spark calls the type of a single value."""
    if column.row is None:
        return table.schema[name].dataType.simpleString()
    return column.sql.replace("VARCHAR", "STRING")
