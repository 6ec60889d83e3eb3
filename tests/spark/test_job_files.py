"""The files of a job: listed by tasks where a table is large, chosen by partition and time."""

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
from secure_bloom.spark import job_files as listed_files
from secure_bloom.spark.job_files import JobFiles, job_files
from secure_bloom.spark.row_schema import RowSchema
from secure_bloom.spark.tasks import row_by_row
from secure_bloom.storage import find_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: Enough folders for the driver to share out, see `split_listing`.
DAYS = 34
NAMED = RowSchema({"path": "string"})


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file in each of many partitions, and one beside them."""
    folder = tmp_path_factory.mktemp("wide") / "table"
    for day in range(DAYS):
        (folder / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [day]}), folder / f"day={day}" / "part-0.parquet")
    pq.write_table(pa.table({"id": [-1]}), folder / "top.parquet")
    return folder


def paths_of(files: JobFiles) -> list[str]:
    from pyspark.sql.functions import spark_partition_id

    made = files.in_tasks(row_by_row(named), NAMED)
    rows = made.withColumn("task", spark_partition_id()).collect()
    assert len({row.task for row in rows}) <= files.tasks + 1
    paths = sorted(row.path for row in rows)
    assert paths == sorted(files)
    assert len(paths) == files.count
    assert files.size == sum(Path(path).stat().st_size for path in paths)
    return paths


def named(path: str) -> Iterator[tuple[str]]:
    yield (path,)


class TestListing:
    def test_tasks_find_what_the_driver_would(self, spark: SparkSession, wide: Path) -> None:
        with job_files(spark, wide) as files:
            assert files.frame is None
            assert paths_of(files) == find_files(wide)
            assert len(files.some(5)) == 5

    def test_many_files_stay_rows_and_large_ones_are_planned(
        self, spark: SparkSession, wide: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pyspark.sql.functions import spark_partition_id

        monkeypatch.setattr(listed_files, "_PLANNED", 10)
        large = wide / "day=5" / "part-0.parquet"
        small = large.read_bytes()
        with large.open("ab") as file:
            file.truncate(200 * 1024 * 1024)
        try:
            with job_files(spark, wide) as files:
                assert files.frame is not None
                assert paths_of(files) == find_files(wide)
                assert len(files.some(5)) == 5
                made = files.in_tasks(row_by_row(named), NAMED)
                of = {
                    row.path: row.task
                    for row in made.withColumn("task", spark_partition_id()).collect()
                }
        finally:
            large.write_bytes(small)
        assert of.pop(str(large)) == 0
        assert 0 not in of.values()

    def test_a_file_that_two_paths_lead_to_is_there_once(
        self, spark: SparkSession, wide: Path
    ) -> None:
        with job_files(spark, [wide, wide / "day=3", wide / "top.parquet"]) as files:
            assert paths_of(files) == find_files(wide)

    @pytest.mark.slow  # `test_table_job` and `test_operate_page` choose in every run
    def test_partitions_and_times_choose(self, spark: SparkSession, wide: Path) -> None:
        with job_files(spark, wide / "day=*", where="day >= 32 or day in (1, 40)") as files:
            assert paths_of(files) == [
                str(wide / f"day={day}/part-0.parquet") for day in (1, 32, 33)
            ]
        late = datetime(2100, 1, 1, tzinfo=UTC)
        with job_files(spark, wide, since=late) as files:
            assert paths_of(files) == []
        os.utime(wide / "day=7" / "part-0.parquet", (late.timestamp(), late.timestamp()))
        with job_files(spark, wide, since="2100-01-01") as files:
            assert paths_of(files) == [str(wide / "day=7/part-0.parquet")]

    def test_what_ends_the_listing_of_a_task_is_raised(
        self, spark: SparkSession, wide: Path
    ) -> None:
        with (
            pytest.raises(PolicyError, match="'city' is not a partition column"),
            job_files(spark, wide / "day=*", where="city = 'Oslo' or day = 99"),
        ):
            pass
        log = wide / "day=9" / "inner" / "_delta_log"
        log.mkdir(parents=True)
        try:
            with (
                pytest.raises(UnsupportedFeatureError, match="a Delta table"),
                job_files(spark, wide),
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
            job_files(spark, [wide, tmp_path]),
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
