"""Tables whose files other writers take away meanwhile: the answers of the local call, on Spark."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import secure_bloom as sb
from secure_bloom.errors import FileChangedError
from secure_bloom.lakes.delta import table_run
from secure_bloom.runs import target as table_change
from secure_bloom.spark import add_bloom_filters, job_files, job_reports, rotate_keys, table_job
from testing.delta_tables import batch, data_files, deltalake, rows
from tests.lakes.iceberg.tables import NAME, delete_by_vector, in_settings, people
from tests.lakes.iceberg.tables import data_files as data_files_of
from tests.spark.test_rekey_job import policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES = 14
Writer = Callable[[], object]


@pytest.fixture(params=["on-the-driver", "on-executors"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of few files, and that of many, which stays where it was made."""
    if request.param == "on-executors":
        monkeypatch.setattr(job_files, "_FEW", 0)


@pytest.fixture
def table(tmp_path: Path) -> str:
    for version in range(FILES):
        deltalake.write_deltalake(str(tmp_path / "t"), batch(6 * version), mode="append")
    return str(tmp_path / "t")


def written_meanwhile(monkeypatch: pytest.MonkeyPatch, write: Writer, *, before: bool) -> None:
    """Let another writer write right before the tasks start, or between them and the commit."""
    real: Any = job_reports.run_file_job

    def job(*args: Any) -> object:
        if before:
            write()
        done = real(*args)
        if not before:
            write()
        return done

    monkeypatch.setattr(table_job, "run_file_job", job)


def overwrite_and_vacuum(table: str) -> None:
    deltalake.write_deltalake(table, batch(1000), mode="overwrite")
    deltalake.DeltaTable(table).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )


def delete_all_but(table: str, number: int) -> None:
    deltalake.DeltaTable(table).delete(f"id < {6 * number}")


@pytest.mark.usefixtures("either_way")
def test_files_that_a_delete_took_away_are_unchanged(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written_meanwhile(monkeypatch, lambda: delete_all_but(table, FILES - 2), before=False)
    where = tmp_path / "report"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        report = add_bloom_filters(spark, table, columns=["email", "id"], report=where)
    (text,) = (str(one.message) for one in told if "another writer" in str(one.message))
    assert text.endswith(f" other files: {table_change.GONE_TOGETHER}")
    found = report.collect()
    gone = [row for row in found if row.status == "unchanged"]
    assert len(gone) == FILES - 2
    for row in gone:
        assert row.notes == [table_change.GONE]
        assert (row.bytes_after, row.column, row.action, row.error) == (
            row.bytes_before,
            None,
            None,
            None,
        )
    added = [(row.column, row.action) for row in found if row.status == "added"]
    assert sorted(added) == sorted([("email", "added"), ("id", "added")] * 2)
    stored = spark.read.parquet(str(where)).collect()
    assert sorted(map(repr, stored)) == sorted(map(repr, found))
    assert len(rows(table)) == 12


@pytest.mark.parametrize(("verb", "few"), [("add", 256), ("rotate", 0)])
def test_files_that_are_no_longer_live_have_not_failed(
    spark: SparkSession,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    verb: str,
    few: int,
) -> None:
    monkeypatch.setattr(job_files, "_FEW", few)
    written_meanwhile(monkeypatch, lambda: overwrite_and_vacuum(table), before=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        if verb == "add":
            report = add_bloom_filters(spark, table, columns=["email"])
        else:
            report = rotate_keys(
                spark, table, policy(tmp_path, "k_pii"), moves={"k_pii": "k_finance"}
            )
    texts = [str(one.message) for one in told if "writer" in str(one.message)]
    assert sum(table_change.NOTHING_WRITTEN in text for text in texts) == 1
    assert len(texts) == 2
    found = report.collect()
    assert {(row.status, row.error, row.hint) for row in found} == {("unchanged", None, None)}
    assert len({row.path for row in found}) == len(found) == FILES
    assert len(rows(table)) == 6
    named = {Path(uri).name for uri in deltalake.DeltaTable(table).file_uris()}
    assert {Path(path).name for path in data_files(table)} == named


def test_an_iceberg_table_that_was_overwritten(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog: SqlCatalog = in_settings(tmp_path, monkeypatch)
    table = people(catalog)

    def overwrite() -> None:
        other = catalog.load_table(table.name())
        other.overwrite(pa.table(other.scan().to_arrow().slice(0, 2)))

    written_meanwhile(monkeypatch, overwrite, before=False)
    with pytest.warns(UserWarning, match=table_change.NOTHING_WRITTEN):
        report = add_bloom_filters(spark, NAME, columns=["email"])
    assert {(row.status, *row.notes) for row in report.collect()} == {
        ("unchanged", table_change.GONE)
    }
    assert sb.read_table(NAME).num_rows == 2


@pytest.mark.usefixtures("either_way")
def test_the_report_of_a_run_whose_commit_failed_is_not_written(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would say that files were added which the table does not have."""
    where = tmp_path / "reports" / "first"
    with monkeypatch.context() as faster:
        faster.setattr(table_run, "commit", always_late)
        with pytest.raises(FileChangedError):
            add_bloom_filters(spark, table, columns=["email"], report=where)
    assert not where.exists()
    add_bloom_filters(spark, table, columns=["email"], report=where)
    assert {row.status for row in spark.read.parquet(str(where)).collect()} == {"added"}
    assert [path.name for path in where.iterdir() if path.name == "_uncommitted"] == []


def always_late(table: Any, *_: object) -> None:
    raise FileChangedError("other writers were faster each time", path=table.folder)


def test_the_report_of_a_table_is_written_where_nothing_is_to_do(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    where = tmp_path / "report"
    add_bloom_filters(spark, table, columns=["email"], since=FILES - 1, report=where)
    assert spark.read.parquet(str(where)).count() == 0


def test_the_report_has_files_that_were_left_out(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = in_settings(tmp_path, monkeypatch)
    table = people(catalog, files=2)
    delete_by_vector(table, data_files_of(table)[0], [3], "vector")
    where = tmp_path / "report"
    with pytest.warns(UserWarning, match="skipped"):
        report = add_bloom_filters(spark, NAME, columns=["email"], report=where)
    found = sorted(map(repr, report.collect()))
    assert [row.status for row in report.orderBy("status").collect()] == ["added", "unchanged"]
    assert sorted(map(repr, spark.read.parquet(str(where)).collect())) == found
