"""The same on each version of Spark, tried on the one that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from secure_bloom.spark import compat
from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [(3, 5), compat.spark_version()])
@pytest.mark.parametrize("rows", [[("a", 1, ["x"]), (None, None, None)], []])
def test_rows_of_the_driver_are_the_same_with_and_without_arrow(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int],
    rows: list[tuple[object, ...]],
) -> None:
    monkeypatch.setattr(compat, "spark_version", lambda: version)
    schema = RowSchema({"a": "string", "b": "int", "c": "array<string>"})
    frame = compat.frame_of(spark, schema, rows)
    assert frame.schema.simpleString() == schema.struct.replace(": ", ":").replace(", ", ",")
    assert list(map(tuple, frame.collect())) == rows
