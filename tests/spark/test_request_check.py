"""A request is held against a few footers, and against all where those do not settle it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.adding.preflight import Survey
from secure_bloom.errors import FilesFailedError, IntegrityError, PolicyError
from secure_bloom.spark import add_bloom_filters, add_task, request_check

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
    monkeypatch.setattr(request_check, "_FEW", 2)
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

    monkeypatch.setattr(request_check, "survey_file", survey_here)
    with pytest.raises(PolicyError, match="no column lat"):
        add_bloom_filters(spark, table, columns=["lat"])


def test_a_kms_is_asked_by_executors_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver may have no rights there."""
    (tmp_path / "policy.toml").write_text(OPENBAO)
    pq.write_table(pa.table({"email": ["a@x"]}), tmp_path / "0.parquet")
    asked: list[str] = []
    monkeypatch.setattr(request_check, "survey_file", lambda path, **_: asked.append(path))
    monkeypatch.setenv("VAULT_TOKEN", "of the driver")
    file, policy = tmp_path / "0.parquet", tmp_path / "policy.toml"
    assert add_bloom_filters(spark, file, policy, on_error="report").first().status == "failed"
    assert asked == []
