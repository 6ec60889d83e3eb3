"""The step in `foreachBatch`, by the blocks of docs/operate-on-spark.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

import secure_bloom as sb
from secure_bloom.spark import add_bloom_filters
from tests.spark.test_operate_page import block, customers, lake
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

__all__ = ["lake"]
BATCHES = 2
Batch = Callable[["DataFrame", int], None]


@pytest.fixture
def reported() -> list[list[Any]]:
    """The reports of all steps, as rows."""
    return []


def names(reported: list[list[Any]], spark: SparkSession) -> dict[str, Any]:
    """What the blocks know: the step notes what it reports."""

    def step(*args: Any, **options: Any) -> DataFrame:
        report = add_bloom_filters(*args, **options)
        reported.append(report.collect())
        return report

    return {"spark": spark, "add_bloom_filters": step}


def statuses(report: list[Any]) -> set[str]:
    return {row.status for row in report}


def test_each_micro_batch_gets_filters_and_one_that_runs_again_adds_no_row(
    spark: SparkSession, lake: Path, reported: list[list[Any]]
) -> None:
    rows = customers(spark)
    for _ in range(BATCHES):
        rows.coalesce(1).write.json(str(lake / "source"), mode="append")
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
    known = {**names(reported, spark), "source": stream.json(str(lake / "source"))}
    exec(block("def write_batch", lake), known)
    assert [statuses(report) for report in reported] == [{"added"}] * BATCHES
    for batch, report in enumerate(reported):
        assert {Path(row.path).parent.name for row in report} == {f"batch={batch}"}
    assert spark.read.parquet(str(lake / "streamed")).count() == 100 * BATCHES
    write_batch: Batch = known["write_batch"]
    write_batch(rows, BATCHES - 1)
    write_batch(rows.limit(0), BATCHES)
    assert len(reported) == BATCHES + 1
    assert spark.read.parquet(str(lake / "streamed")).count() == 100 * BATCHES
    assert not (lake / "streamed" / f"batch={BATCHES}").exists()
    everything = add_bloom_filters(spark, lake / "streamed", "keys/policy.toml").collect()
    assert statuses(everything) == {"unchanged"}


@since_4_0
def test_each_micro_batch_of_a_delta_table_gets_filters_once(
    spark: SparkSession, lake: Path, reported: list[list[Any]]
) -> None:
    rows = spark.range(100).selectExpr("id", "concat('user', id) AS user")
    table = str(lake / "clicks")
    deltalake.write_deltalake(table, rows.limit(0).toArrow())
    known = names(reported, spark)
    exec(block("def append_batch", lake), known)
    append_batch: Batch = known["append_batch"]
    for batch in range(BATCHES):
        append_batch(rows, batch)
    assert [statuses(report) for report in reported] == [{"added"}] * BATCHES
    assert [len({row.path for row in report}) for report in reported] == [1] * BATCHES
    version = deltalake.DeltaTable(table).version()
    append_batch(rows, BATCHES - 1)
    assert statuses(reported[-1]) == {"unchanged"}
    assert deltalake.DeltaTable(table).version() == version
    append_batch(rows.limit(0), BATCHES)
    assert reported[-1] == []
    assert sb.read_table(table).num_rows == 100 * BATCHES
