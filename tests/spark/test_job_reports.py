"""The report of a job on files: raised or returned, kept or written, with few words for many."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FilesFailedError, PolicyError, ReportLostError, SecureBloomError
from secure_bloom.spark import add_bloom_filters, job_files, reencrypt, rotate_keys
from secure_bloom.spark.job_reports import OnError, Reporting, check_report
from testing.delta_tables import write_table
from testing.spark.cluster import POLICY
from tests.storage.test_write_permit import content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(params=["on-the-driver", "on-executors"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of few files, and that of many, which stays where it was made."""
    if request.param == "on-executors":
        monkeypatch.setattr(job_files, "_FEW", 0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three files, of which the second is none."""
    folder = tmp_path / "table"
    folder.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"id": range(10)}), folder / f"{i}.parquet")
    (folder / "1.parquet").write_bytes(b"not Parquet at all")
    return folder


def statuses(rows: list) -> dict[str, str]:
    return {Path(row.path).name: row.status for row in rows}


TRIED = {"0.parquet": "added", "1.parquet": "failed", "2.parquet": "added"}


@pytest.mark.usefixtures("either_way")
def test_a_report_goes_to_a_folder_and_a_failure_is_raised_after_all_files_were_tried(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    """The session encrypts what it writes, by a policy whose columns a report does not have."""
    where = tmp_path / "reports" / "first"
    report = add_bloom_filters(spark, table, columns=["id"], on_error="report", report=where)
    assert statuses(report.collect()) == TRIED
    assert statuses(spark.read.parquet(str(where)).collect()) == TRIED
    with pytest.raises(PolicyError, match="the report is there already"):
        add_bloom_filters(spark, table, columns=["id"], report=where)
    second = str(tmp_path / "second")
    with pytest.raises(FilesFailedError) as caught:
        add_bloom_filters(spark, table, columns=["id"], replace_filters=True, report=second)
    error = caught.value
    assert isinstance(error, SecureBloomError)
    assert str(error).startswith("1 of 3 files failed, and the others are done; the first: ")
    assert str(table / "1.parquet") in str(error)
    assert "on_error='report'" in str(error.hint)
    (failed,) = error.report.where("status = 'failed'").collect()
    assert failed.hint is None or str(error.hint).startswith(failed.hint)
    assert statuses(error.report.collect()) == TRIED


def test_an_unknown_wish_is_told_before_anything_is_done(spark: SparkSession, table: Path) -> None:
    for job in (add_bloom_filters, reencrypt, rotate_keys):
        with pytest.raises(PolicyError, match="on_error is 'ignore'") as caught:
            job(spark, table, POLICY, on_error="ignore")
        assert caught.value.hint == "it is one of 'raise', 'report'"


def test_a_report_inside_of_the_table_is_refused(spark: SparkSession, table: Path) -> None:
    """It is Parquet, so its rows would be rows of the table."""
    (table / "1.parquet").unlink()
    before = {path: path.read_bytes() for path in table.iterdir()}
    for where in (table / "report", table / "day=1" / "report"):
        with pytest.raises(PolicyError, match="inside the table itself"):
            add_bloom_filters(spark, table, columns=["id"], report=where)
    assert {path: path.read_bytes() for path in table.iterdir()} == before


def test_other_keys_raise_and_report_in_the_same_way(spark: SparkSession, table: Path) -> None:
    policy = table.parent / "policy.toml"
    keyring = POLICY.with_name("dev-keyring.json")
    policy.write_text(
        f'[kms]\nclient = "keyring"\nkeyring = "{keyring}"\n[footer]\nkey = "k_footer"\n'
        '[columns.id]\nkey = "k_pii"\n'
    )
    with pytest.raises(FilesFailedError, match="1 of 3 files failed") as caught:
        reencrypt(spark, table, policy)
    assert statuses(caught.value.report.collect()) == dict.fromkeys(TRIED, "reencrypted") | {
        "1.parquet": "failed"
    }
    rotated = rotate_keys(spark, table, policy, on_error="report", where=None)
    assert statuses(rotated.collect()) == dict.fromkeys(TRIED, "unchanged") | {
        "1.parquet": "failed"
    }


@pytest.mark.usefixtures("either_way")
def test_notes_of_many_files_are_few_warnings_and_all_in_the_report(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = 12
    (tmp_path / "table").mkdir()
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "first")
    for i in range(files):
        os.link(tmp_path / "first", tmp_path / "table" / f"{i:02}.parquet")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        report = add_bloom_filters(spark, tmp_path / "table", columns=["id"])
    texts = [
        str(one.message)
        for one in told
        if "notes" in str(one.message) or "link" in str(one.message)
    ]
    assert sum("(hard link)" in text for text in texts) == 10
    assert "2 more files with notes" in texts[-1]
    assert report.where("size(notes) > 0").count() == files


def test_a_summary_that_describes_other_files_is_not_told_of(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A `_metadata` file that can be read counts for the files that it names."""
    table = tmp_path / "table"
    table.mkdir()
    collected: list[pq.FileMetaData] = []
    for name in ("0.parquet", "other.parquet"):
        pq.write_table(pa.table({"id": range(10)}), table / name, metadata_collector=collected)
    for metadata, name in zip(collected, ("0.parquet", "other.parquet"), strict=True):
        metadata.set_file_path(name)
    pq.write_metadata(collected[1].schema.to_arrow_schema(), table / "_metadata", collected[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        add_bloom_filters(spark, table / "0.parquet", columns=["id"])
    with pytest.warns(UserWarning, match="_metadata describes files"):
        add_bloom_filters(spark, table, columns=["id"])


@pytest.mark.usefixtures("either_way")
def test_a_report_that_cannot_be_written_is_one_sentence_after_the_work(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    (table / "1.parquet").unlink()
    (tmp_path / "file").write_text("no folder can be below this")
    where = tmp_path / "file" / "report"
    with pytest.raises(ReportLostError) as caught:
        add_bloom_filters(spark, table, columns=["id"], report=where)
    told = str(caught.value)
    assert told.startswith(
        f"{where}: the work on 2 files is done, but the report could not be written: "
    )
    assert "\n" not in told
    assert len(told) < 600
    assert " at org.apache" not in told
    assert statuses(caught.value.report.collect()).keys() == {"0.parquet", "2.parquet"}
    again = add_bloom_filters(spark, table, columns=["id"])
    assert {row.status for row in again.collect()} == {"unchanged"}


@pytest.mark.parametrize("is_table", [False, True])
def test_a_report_to_which_spark_has_no_way_is_an_error_before_the_work(
    spark: SparkSession, tmp_path: Path, is_table: bool
) -> None:
    """This Spark has no jar for S3."""
    if is_table:
        table = Path(write_table(tmp_path / "t", 1))
    else:
        table = tmp_path
        pq.write_table(pa.table({"id": range(10)}), table / "0.parquet")
    before = content(table)
    with pytest.raises(PolicyError, match="Spark cannot write the report there") as caught:
        add_bloom_filters(spark, table, columns=["id"], report="s3://bucket/report")
    assert len(str(caught.value)) < 300
    assert content(table) == before


def test_a_report_that_is_there_already_is_found_by_sparks_own_file_system(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    """As in a store: this package does not look there."""
    (tmp_path / "first").mkdir()
    where = Reporting(on_error=OnError.RAISE, path=f"file://{tmp_path}/first", progress=None)
    with pytest.raises(PolicyError, match="the report is there already"):
        check_report(spark, where, [str(table)])


def test_files_that_failed_and_a_lost_report_are_one_error(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    where = tmp_path / "file" / "report"
    with pytest.raises(FilesFailedError, match="the report could not be written") as failed:
        add_bloom_filters(spark, table, columns=["id"], report=where)
    assert statuses(failed.value.report.collect()) == TRIED
    with pytest.raises(ReportLostError, match="1 of 3 files failed, and the others are done, but"):
        add_bloom_filters(spark, table, columns=["id"], report=where, on_error="report")


@pytest.mark.usefixtures("either_way")
def test_the_log_counts_files_and_names_none(
    spark: SparkSession, table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="secure_bloom"):
        add_bloom_filters(spark, table, columns=["id"], on_error="report")
    begin, end = [it.getMessage() for it in caplog.records if it.name == "secure_bloom.spark"]
    size = sum(path.stat().st_size for path in table.iterdir())
    assert begin.startswith("begin: 3 files, ")
    assert int(begin.split(", ")[1].split()[0]) < size
    assert end.startswith("end: 3 files, 1 failed, 0 with notes, ")
    assert "id" not in begin + end.replace("with", "")


def test_a_selection_of_no_file_is_told(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "0.parquet")
    with pytest.warns(UserWarning, match="no file was chosen"):
        report = add_bloom_filters(spark, tmp_path, columns=["id"], since="2100-01-01")
    assert report.count() == 0
