"""The files of a job: listed by tasks where a table is large, and found by a table's name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.spark import add_bloom_filters
from secure_bloom.spark.table_files import TableFiles, table_files
from secure_bloom.storage import find_files
from tests.spark.parquet_java import PLAIN_WRITE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: Enough folders for the driver to share out, see `split_listing`.
DAYS = 34


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file in each of many partitions, and one beside them."""
    folder = tmp_path_factory.mktemp("wide") / "table"
    for day in range(DAYS):
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), folder / f"day={day}" / "part-0.parquet")
    pq.write_table(pa.table({"id": [-1]}), folder / "top.parquet")
    return folder


def paths_of(files: TableFiles) -> list[str]:
    rows = sorted(row.path for row in files.rows(tasks=3).collect())
    assert rows == sorted(files)
    assert len(rows) == files.count
    return rows


class TestListing:
    def test_tasks_find_what_the_driver_would(self, spark: SparkSession, wide: Path) -> None:
        with table_files(spark, wide) as files:
            assert files.frame is not None
            assert paths_of(files) == find_files(wide)
            assert len(files.some(5)) == 5

    def test_a_file_that_two_paths_lead_to_is_there_once(
        self, spark: SparkSession, wide: Path
    ) -> None:
        with table_files(spark, [wide, wide / "day=3", wide / "top.parquet"]) as files:
            assert paths_of(files) == find_files(wide)

    def test_partitions_and_times_choose(self, spark: SparkSession, wide: Path) -> None:
        with table_files(spark, wide / "day=*", where="day >= 32 or day in (1, 40)") as files:
            assert paths_of(files) == [
                str(wide / f"day={day}/part-0.parquet") for day in (1, 32, 33)
            ]
        late = datetime(2100, 1, 1, tzinfo=UTC)
        with table_files(spark, wide, since=late) as files:
            assert paths_of(files) == []
        os.utime(wide / "day=7" / "part-0.parquet", (late.timestamp(), late.timestamp()))
        with table_files(spark, wide, since="2100-01-01") as files:
            assert paths_of(files) == [str(wide / "day=7/part-0.parquet")]

    def test_what_ends_the_listing_of_a_task_is_raised(
        self, spark: SparkSession, wide: Path
    ) -> None:
        with (
            pytest.raises(PolicyError, match="city is no partition column"),
            table_files(spark, wide / "day=*", where="city = 'Oslo' or day = 99"),
        ):
            pass
        log = wide / "day=9" / "inner" / "_delta_log"
        log.mkdir(parents=True)
        try:
            with (
                pytest.raises(UnsupportedFeatureError, match="a Delta table"),
                table_files(spark, wide),
            ):
                pass
        finally:
            log.rmdir()
            log.parent.rmdir()

    def test_a_path_without_files_is_an_error(
        self, spark: SparkSession, wide: Path, tmp_path: Path
    ) -> None:
        with (
            pytest.raises(PolicyError, match="holds no Parquet file") as caught,
            table_files(spark, [wide, tmp_path]),
        ):
            pass
        assert caught.value.path == str(tmp_path)

    def test_new_files_of_a_partition_alone_are_touched(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """What an hourly job does: the rest of the table stays as it is, to the inode."""
        for day in (1, 2):
            for part in (1, 2):
                (tmp_path / f"day={day}").mkdir(exist_ok=True)
                pq.write_table(pa.table({"id": [day]}), tmp_path / f"day={day}" / f"{part}.parquet")
        old = 1_600_000_000
        for path in tmp_path.glob("day=*/1.parquet"):
            os.utime(path, (old, old))
        before = {path: path.stat().st_ino for path in tmp_path.glob("day=*/*.parquet")}
        report = add_bloom_filters(
            spark, tmp_path, columns=["id"], where="day = 2", since="2021-01-01T00:00:00Z"
        )
        assert [Path(row.path).relative_to(tmp_path) for row in report.collect()] == [
            Path("day=2/2.parquet")
        ]
        changed = {path for path, inode in before.items() if path.stat().st_ino != inode}
        assert changed == {tmp_path / "day=2" / "2.parquet"}
        nothing = add_bloom_filters(spark, tmp_path, columns=["id"], since="2100-01-01")
        assert nothing.isEmpty()


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    spark.sql("CREATE DATABASE lake")
    yield "lake"
    spark.sql("DROP DATABASE lake CASCADE")


class TestTableNames:
    def test_a_name_means_the_tables_files(
        self, spark: SparkSession, database: str, tmp_path: Path
    ) -> None:
        rows = spark.range(20).selectExpr("id", "id % 2 AS part")
        rows.write.options(**PLAIN_WRITE, path=str(tmp_path / "far")).partitionBy(
            "part"
        ).saveAsTable(f"{database}.numbers")
        report = add_bloom_filters(spark, "lake.numbers", columns=["id"], where="part = 1")
        (folder,) = {Path(row.path).parent for row in report.collect()}
        assert folder == tmp_path / "far" / "part=1"
        with table_files(spark, "spark_catalog.lake.`numbers`") as files:
            assert list(files) == find_files(tmp_path / "far")

    def test_a_file_of_that_name_comes_first(
        self,
        spark: SparkSession,
        database: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        spark.range(1).write.options(**PLAIN_WRITE).saveAsTable("lake.parquet")
        monkeypatch.chdir(tmp_path)
        pq.write_table(pa.table({"id": [1]}), "lake.parquet")
        with table_files(spark, "lake.parquet") as files:
            assert list(files) == [str(tmp_path / "lake.parquet")]

    def test_what_is_no_table_of_parquet_files_is_refused(
        self, spark: SparkSession, database: str
    ) -> None:
        spark.range(1).write.format("json").saveAsTable("lake.texts")
        spark.sql("CREATE VIEW lake.seen AS SELECT * FROM lake.texts")
        spark.range(1).createOrReplaceTempView("fleeting")
        for name, reason in (("lake.texts", "json"), ("lake.seen", "view"), ("fleeting", "view")):
            with pytest.raises(UnsupportedFeatureError, match=reason), table_files(spark, name):
                pass
        with pytest.raises(PolicyError, match="no such file"), table_files(spark, "lake.nothing"):
            pass
