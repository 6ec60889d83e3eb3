"""Keys that a shuffle brings to chosen partitions, by Spark's own hash and Spark's own shuffle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from secure_bloom.spark.shuffle_keys import hash_of_int, shuffle_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    rows = spark.range(200).selectExpr("hash(cast(id AS int)) AS hash").collect()
    assert [row.hash for row in rows] == list(map(hash_of_int, range(200)))


@pytest.mark.parametrize("partitions", [1, 2, 7, 64])
def test_each_row_is_in_the_partition_that_its_key_names(
    spark: SparkSession, partitions: int
) -> None:
    keys = [(partition, key) for partition, key in enumerate(shuffle_keys(partitions))]
    rows = spark.createDataFrame(keys, "wanted int, key int").repartition(partitions, "key")
    found = rows.selectExpr("wanted", "spark_partition_id() AS found").collect()
    assert len(found) == partitions
    assert all(row.wanted == row.found for row in found)
