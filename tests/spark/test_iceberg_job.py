"""The step after the write on an Iceberg table: tasks write, the driver commits."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.spark import add_bloom_filters
from testing.storage import port
from tests.lakes.iceberg.tables import (
    NAME,
    all_rows,
    data_files,
    delete_positions,
    in_settings,
    in_store,
    local,
    people,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["port"]

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    return in_settings(tmp_path, monkeypatch)


def test_executors_write_and_the_driver_commits(spark: SparkSession, catalog: SqlCatalog) -> None:
    table = people(catalog)
    first, *others = data_files(table)
    delete_positions(table, first, [3, 4], "pos")
    before = all_rows(table)
    report = add_bloom_filters(spark, NAME, columns=["email", "id"])
    status = {row.path: row.status for row in report.collect()}
    assert status == {str(local(path)): "added" for path in (first, *others)}
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["added-data-files"] == "3"
    assert all_rows(table) == before
    assert sb.probe(NAME, "email", ["nobody"]).verdicts == {sb.Verdict.ABSENT}
    again = add_bloom_filters(spark, NAME, columns=["email", "id"], since=snapshot.snapshot_id)
    assert again.count() == 0
    assert table.refresh().current_snapshot() == snapshot


def test_executors_are_told_where_the_store_is(
    spark: SparkSession, port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have credentials of their own: those of the catalog stay on the driver."""
    settings = in_store(port, monkeypatch)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setitem(spark.sparkContext.environment, name, "of-the-executors")
    for name in ("s3.access-key-id", "s3.secret-access-key"):
        settings[name] = "of-the-driver"
    table = people(in_settings(tmp_path, monkeypatch, **settings), files=2)
    report = add_bloom_filters(spark, NAME, columns="email")
    assert {row.status for row in report.collect()} == {"added"}
    assert len(all_rows(table)) == 200
    assert sb.probe(NAME, "email", "nobody").verdicts == {sb.Verdict.ABSENT}


def test_mistakes_are_errors_before_anything_is_written(
    spark: SparkSession, catalog: SqlCatalog, tmp_path: Path
) -> None:
    table = people(catalog, files=1)
    files = sorted(local(table.location()).rglob("*"))
    for options, message in (
        ({"columns": "emial"}, "emial"),
        ({"columns": "email", "in_place": True}, "in_place is for files"),
        ({"columns": "email", "since": datetime(2026, 1, 1, tzinfo=UTC)}, "id of a snapshot"),
        ({"columns": "email", "branch": "none"}, "no branch none"),
    ):
        with pytest.raises(PolicyError, match=message):
            add_bloom_filters(spark, NAME, **options)
    with pytest.raises(PolicyError, match="branch is for Iceberg tables"):
        add_bloom_filters(spark, str(tmp_path), columns="email", branch="main")
    assert sorted(local(table.location()).rglob("*")) == files
