"""The step after the write on a Delta table: tasks write, the driver commits."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import secure_bloom as sb
from secure_bloom.errors import FilesFailedError, PolicyError, UnsupportedFeatureError
from secure_bloom.spark import add_bloom_filters, audit, reencrypt, rotate_keys
from testing import delta_logs as logs
from testing.delta_tables import data_files, latest, named, rows, unfiltered, write_table
from testing.spark.cluster import POLICY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> str:
    return write_table(tmp_path / "t", 2)


def test_one_commit_gives_filters_to_every_live_file(spark: SparkSession, table: str) -> None:
    before = rows(table)
    report = add_bloom_filters(spark, table, columns=["email", "id"])
    assert {(row.status, row.column) for row in report.collect()} == {
        ("added", "email"),
        ("added", "id"),
    }
    assert (latest(table), rows(table), rows(table, 1)) == (2, before, before)
    assert unfiltered(table, "email") == []
    (info,) = named(table, 2, "commitInfo")
    assert info["operationMetrics"]["numAddedFiles"] == "6"
    files = data_files(table)
    again = add_bloom_filters(spark, table, columns=["email", "id"])
    assert {row.status for row in again.collect()} == {"unchanged"}
    assert (latest(table), data_files(table)) == (2, files)


def test_a_run_takes_partitions_and_what_came_after_a_version_or_a_time(
    spark: SparkSession, table: str
) -> None:
    where = "day = '2026-11-20'"
    report = add_bloom_filters(spark, table, columns="email", where=where, since=0)
    assert report.select("path").distinct().count() == 1
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert add_bloom_filters(spark, table, columns="email", since=later).count() == 0
    assert latest(table) == 2


def test_a_file_that_fails_stops_no_commit_of_the_others(spark: SparkSession, table: str) -> None:
    bad = named(table, 0, "add")[0]["path"].replace("%25", "%")
    path = Path(table, bad)
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    with pytest.raises(FilesFailedError, match="1 of 6 files failed"):
        add_bloom_filters(spark, table, columns="email")
    assert len(named(table, 2, "add")) == 5


def test_what_cannot_be_done_is_told_before_anything_is_written(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    files = data_files(table)
    with pytest.raises(UnsupportedFeatureError, match="never changed in place"):
        add_bloom_filters(spark, table, columns="email", in_place=True)
    with pytest.raises(PolicyError, match="emial"):
        add_bloom_filters(spark, table, columns="emial")
    with pytest.raises(PolicyError, match="since is a version"):
        add_bloom_filters(spark, str(tmp_path), columns="email", since=1)
    assert (latest(table), data_files(table)) == (1, files)


def test_a_table_that_other_formats_mirror_is_refused_by_the_property(
    spark: SparkSession, table: str
) -> None:
    (metadata,) = named(table, 0, "metaData")
    metadata["configuration"]["delta.universalFormat.enabledFormats"] = "iceberg"
    logs.commit(Path(table), 2, {"metaData": metadata})
    files = data_files(table)
    for step in (
        lambda: add_bloom_filters(spark, table, columns="email"),
        lambda: reencrypt(spark, table, policy=POLICY),
        lambda: rotate_keys(spark, table, policy=POLICY),
    ):
        with pytest.raises(UnsupportedFeatureError, match="universalFormat"):
            step()
    assert data_files(table) == files
    assert [action.name for action in Path(table, "_delta_log").glob("*3.json")] == []


def test_a_dry_run_writes_nothing(spark: SparkSession, table: str) -> None:
    files = data_files(table)
    report = add_bloom_filters(spark, table, columns="email", dry_run=True)
    assert {row.status for row in report.collect()} == {"added"}
    assert (latest(table), data_files(table)) == (1, files)


_POLICY = """
[kms]
client = "keyring"
keyring = "{keyring}"
[footer]
key = "k_footer"
[columns.email]
key = "{key}"
"""


def policy(folder: Path, key: str, more: str = "") -> sb.KeyPolicy:
    path = folder / "policy.toml"
    path.write_text(_POLICY.format(keyring=POLICY.parent / "dev-keyring.json", key=key) + more)
    return sb.KeyPolicy.load(path)


def test_executors_write_files_under_other_keys_and_the_driver_commits(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    before = rows(table)
    first, second = policy(tmp_path, "k_pii"), policy(tmp_path, "k_finance")
    with pytest.warns(UserWarning, match="under their old keys, until the table's VACUUM"):
        report = reencrypt(spark, table, first)
    assert {(row.status, row.column, row.key) for row in report.collect()} == {
        ("reencrypted", "id", None),
        ("reencrypted", "email", "k_pii"),
    }
    new = {row.new_path for row in report.collect()}
    assert not any("email" in json.loads(it["stats"])["minValues"] for it in named(table, 2, "add"))
    with pytest.warns(UserWarning, match="under their old keys"):
        report = rotate_keys(spark, table, second, moves={"k_pii": "k_finance"})
    assert new == {row.path for row in report.collect()}
    assert {row.status for row in report.collect()} == {"rotated"}
    assert (latest(table), named(table, 3, "commitInfo")[0]["operation"]) == (3, "ROTATE KEYS")
    keys = second.kms_client()
    found = sb.read_table(table, keys=keys).to_pylist()
    assert sorted(found, key=lambda row: int(row["id"])) == before
    again = reencrypt(spark, table, second)
    assert ({row.status for row in again.collect()}, latest(table)) == ({"unchanged"}, 3)


def test_key_material_outside_files_is_left_to_one_machine(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    outside = policy(tmp_path, "k_pii", '[encryption]\nkey_material = "external"\n')
    with pytest.raises(UnsupportedFeatureError, match="key material outside"):
        reencrypt(spark, table, outside)
    assert latest(table) == 1


def test_the_audit_looks_at_live_files_and_at_the_log(
    spark: SparkSession, table: str, tmp_path: Path
) -> None:
    wanted = policy(tmp_path, "k_pii")
    sb.reencrypt(table, policy=wanted, where="day = '2026-11-20'")
    keys = wanted.kms_client()
    here = sb.audit(table, policy=wanted, keys=keys)
    on_spark = audit(spark, table, wanted).collect()
    found = {(row.id, row.path, row.column) for row in on_spark}
    assert found == {(it.id, it.path, it.column) for it in here.findings}
    assert ("table-log-in-clear", table, "email") in found
    live = {row.path for row in on_spark if row.id == "column-in-clear" and "VACUUM" not in row.fix}
    assert live
    assert not any(".sb-" in str(path) for path in live)
    sb.reencrypt(table, policy=wanted)
    assert audit(spark, table, wanted).count() == len(sb.audit(table, policy=wanted).findings)
    left = audit(spark, table, wanted).collect()
    assert {row.id for row in left} >= {"table-log-in-clear", "column-in-clear"}
    for row in left:
        # What older versions leave until VACUUM, and until the log is cleaned up.
        assert "older versions" in row.message or "the current version" in row.message, row
