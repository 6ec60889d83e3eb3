"""A file sink of Structured Streaming, written by Spark: its log says which files count."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import secure_bloom as sb
from testing.spark.parquet_java import PLAIN_WRITE
from tests.spark.versions import since_4_2

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BATCHES = 4


# Spark 4.1 writes a sink under the keys of the session, whatever the options of the stream say.
@since_4_2
def test_rows_are_those_that_spark_reads_from_the_sink(spark: SparkSession, tmp_path: Path) -> None:
    source, sink = tmp_path / "source", tmp_path / "a sink"
    for n in range(BATCHES):
        rows = f"{n},a/b\n{n + 10},x%3D\n{n + 20},\n"
        source.mkdir(exist_ok=True)
        (source / f"{n}.csv").write_text(rows)
    option = "spark.sql.streaming.fileSink.log.compactInterval"
    before = spark.conf.get(option)
    spark.conf.set(option, "3")
    try:
        stream = spark.readStream.schema("id bigint, p string").option("maxFilesPerTrigger", 1)
        query = (
            stream.csv(str(source))
            .coalesce(1)
            .writeStream.options(**PLAIN_WRITE)
            .partitionBy("p")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(sink))
        )
        query.awaitTermination()
    finally:
        spark.conf.set(option, before)
    assert (sink / "_spark_metadata/2.compact").exists()
    committed = next(sink.rglob("part-*.parquet"))
    shutil.copy(committed, committed.with_name("part-uncommitted.parquet"))
    wanted = spark.read.parquet(str(sink)).collect()
    assert len(wanted) == 3 * BATCHES
    found = sb.read_table(sink).to_pylist()
    assert sorted((row["id"], row["p"]) for row in found) == sorted((r.id, r.p) for r in wanted)
    part = committed.parent
    assert sb.read_table(part).num_rows == BATCHES
