"""NaN equals NaN in Spark, which asks the filter for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secure_bloom as sb
from testing.spark.parquet_java import PLAIN_WRITE

pytestmark = pytest.mark.spark

CONDITIONS = [
    "d = double('NaN')",
    "f = float('NaN')",
    "d <=> double('NaN')",
    "d in (double('NaN'), 7.0D)",
    "isnan(d)",
    "d > 1e300",
]


@pytest.mark.parametrize("dictionary", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_nan_is_found_as_before(spark: SparkSession, tmp_path: Path, dictionary: str) -> None:
    table = str(tmp_path / "nan")
    spark.range(1000).selectExpr(
        "if(id % 10 = 0, double('NaN'), id / 2D) as d",
        "if(id % 10 = 0, float('NaN'), float(id)) as f",
    ).coalesce(1).write.options(**PLAIN_WRITE, **{"parquet.enable.dictionary": dictionary}).parquet(
        table
    )

    def counts() -> list[int]:
        return [spark.read.parquet(table).where(condition).count() for condition in CONDITIONS]

    before = counts()
    assert before[0] == 100
    report = sb.add_bloom_filters(table, columns=["d", "f"])
    assert [f.action for f in report.files[0].filters] == ["added", "added"]
    assert counts() == before
