"""``register`` makes the source known, and pushes filters only where that is safe or wished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.spark import register
from secure_bloom.spark.registration import keeps_filters_apart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ROWS = 60


@pytest.fixture(autouse=True)
def clean(spark: SparkSession) -> Iterator[None]:
    spark.conf.unset(PUSHDOWN)
    yield
    spark.conf.unset(PUSHDOWN)


def loaded(spark: SparkSession, folder: Path) -> DataFrame:
    pq.write_table(pa.table({"id": range(ROWS)}), folder / "x.parquet")
    return spark.read.format("secure_bloom").load(str(folder))


@pytest.mark.parametrize("wish", [None, True, False])
def test_filters_are_pushed_as_wished_else_where_that_is_safe(
    spark: SparkSession, wish: bool | None
) -> None:
    register(spark, push_filters=wish)
    pushes = keeps_filters_apart(spark) if wish is None else wish
    assert (spark.conf.get(PUSHDOWN) == "true") is pushes


def test_filters_of_one_query_do_not_reach_another(spark: SparkSession, tmp_path: Path) -> None:
    """Spark up to 4.3 hands them on; a source that is registered without a wish is safe."""
    register(spark)
    table = loaded(spark, tmp_path)
    one, other = table.where("id = 1"), table.where("id = 2")
    assert sorted(one.union(other).collect()) == [(1,), (2,)]
    assert one.collect() == [(1,)]
    assert table.where("id = 1 or id < 0").count() == 1
    assert table.count() == ROWS
    assert one.crossJoin(other.withColumnRenamed("id", "x")).collect() == [(1, 2)]


def test_whether_spark_keeps_filters_apart_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    register(spark, push_filters=True)
    table = loaded(spark, tmp_path)
    assert table.where("id = 1").count() == 1
    assert (table.count() == ROWS) is keeps_filters_apart(spark)
