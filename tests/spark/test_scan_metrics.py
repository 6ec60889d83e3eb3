"""The rows that scans returned are those of the row groups that Spark read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.spark.scan_metrics import collect_scanned, rows_scanned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ROWS, GROUP = 40, 10


@pytest.fixture
def table(tmp_path: Path) -> str:
    # Plain values: a dictionary would rule row groups out, too.
    rows = pa.table({"id": range(ROWS)})
    pq.write_table(rows, tmp_path / "x.parquet", row_group_size=GROUP, use_dictionary=False)
    return str(tmp_path)


def test_rows_of_skipped_row_groups_do_not_count(spark: SparkSession, table: str) -> None:
    assert rows_scanned(spark.read.parquet(table)) == ROWS
    found, scanned = collect_scanned(spark.read.parquet(table).where("id = 15"))
    assert ([row.id for row in found], scanned) == ([15], GROUP)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_scans_below_a_shuffle_and_all_scans_of_a_plan_count(
    spark: SparkSession, table: str, adaptive: str
) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        rows = spark.read.parquet(table)
        assert rows_scanned(rows.groupBy("id").count()) == ROWS
        assert rows_scanned(rows.union(rows.where("id < 10"))) == ROWS + GROUP
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_a_plan_without_a_scan_gives_none(spark: SparkSession) -> None:
    assert collect_scanned(spark.range(3)) == ([(0,), (1,), (2,)], 0)
