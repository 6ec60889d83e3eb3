"""A request is held against a few footers, and against all where those do not settle it."""

from __future__ import annotations

import dataclasses
import warnings
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.adding.preflight import Survey
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FilesFailedError, IntegrityError, PolicyError
from secure_bloom.spark import add_bloom_filters, add_job, add_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: Nothing listens there.
OPENBAO = """
[kms]
client = "vault"
address = "https://127.0.0.1:1"
retry_seconds = 0
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = true
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four files, of which the first and the third are looked at first.

    The second has a column that the others lack, and one in another type.
    """
    monkeypatch.setattr(add_job, "_FEW", 2)
    ids = {"id": [1]}
    for i, columns in enumerate((ids, {"id": [True], "late": [3]}, ids, ids)):
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    return tmp_path


def test_a_column_of_one_late_file_is_found(spark: SparkSession, table: Path) -> None:
    report = add_bloom_filters(spark, table, columns=["late"])
    done = {Path(row.path).name: row.action for row in report.collect()}
    assert done == {
        "0.parquet": "skipped",
        "1.parquet": "added",
        "2.parquet": "skipped",
        "3.parquet": "skipped",
    }


def test_a_column_that_no_file_has_is_told_before_any_is_written(
    spark: SparkSession, table: Path
) -> None:
    before = {path: path.stat().st_ino for path in table.iterdir()}
    with pytest.raises(PolicyError, match="no column lat") as caught:
        add_bloom_filters(spark, table, columns=["lat"])
    assert "late" in str(caught.value.hint)
    assert {path: path.stat().st_ino for path in table.iterdir()} == before


def test_what_only_one_file_refuses_fails_that_file(spark: SparkSession, table: Path) -> None:
    with pytest.raises(FilesFailedError, match=r"1 of 4 files failed.*BOOLEAN"):
        add_bloom_filters(spark, table, columns=["id"])


def test_what_the_driver_can_read_takes_no_job_of_its_own(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_a_task(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(add_task, "survey", in_a_task)
    assert add_bloom_filters(spark, table, columns=["id"], on_error="report").count()


def test_executors_read_the_footers_that_the_driver_cannot(
    spark: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def survey_here(path: str, *_: object, **__: object) -> Survey:
        return Survey(path=path, failure=IntegrityError("no key here"))

    monkeypatch.setattr(add_job, "survey_file", survey_here)
    with pytest.raises(PolicyError, match="no column lat"):
        add_bloom_filters(spark, table, columns=["lat"])


def test_a_kms_is_asked_by_executors_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver may have no rights there."""
    (tmp_path / "policy.toml").write_text(OPENBAO)
    pq.write_table(pa.table({"email": ["a@x"]}), tmp_path / "0.parquet")
    asked: list[str] = []
    monkeypatch.setattr(add_job, "survey_file", lambda path, **_: asked.append(path))
    monkeypatch.setenv("VAULT_TOKEN", "of the driver")
    file, policy = tmp_path / "0.parquet", tmp_path / "policy.toml"
    assert add_bloom_filters(spark, file, policy, on_error="report").first().status == "failed"
    assert asked == []


def test_a_filter_that_sparks_reader_does_not_use_has_a_warning(
    spark: SparkSession, tmp_path: Path
) -> None:
    at = [datetime(2026, 1, 1)]
    columns = {
        "naive": pa.array(at, pa.timestamp("us")),
        "at": pa.array(at, pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(columns), tmp_path / "0.parquet")
    with pytest.warns(UserWarning, match="column naive is a timestamp without a zone") as caught:
        add_bloom_filters(spark, tmp_path, columns=["naive", "at"])
    assert sum("without a zone" in str(it.message) for it in caught) == 1


def test_a_session_of_another_policy_has_a_warning_and_its_error_keeps_the_files_hint(
    spark: SparkSession, policy: KeyPolicy, tmp_path: Path
) -> None:
    rows = spark.createDataFrame(
        [("a", "b", "c", "it", 1)],
        "email string, iban string, national_id string, country string, id long",
    )
    rows.coalesce(1).write.parquet(str(tmp_path / "t"))
    with warnings.catch_warnings(record=True) as none:
        warnings.simplefilter("always")
        add_bloom_filters(spark, tmp_path / "t", policy, dry_run=True)
    assert not [it for it in none if "the session writes" in str(it.message)]
    other = dataclasses.replace(
        policy,
        columns={
            **policy.columns,
            "email": dataclasses.replace(policy.columns["email"], key="k_finance"),
        },
        older_keys=frozenset({"k_pii"}),
    )
    with (
        pytest.warns(UserWarning, match=r"column email: the policy says k_finance, .* k_pii"),
        pytest.raises(FilesFailedError) as caught,
    ):
        add_bloom_filters(spark, tmp_path / "t", other, replace_filters=True)
    assert str(caught.value.hint).startswith("secure-bloom rotate PATH --policy FILE brings files")
