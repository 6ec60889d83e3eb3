"""Re-encryption and rotation on executors, judged by Spark's own reader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import secure_bloom as sb
from secure_bloom.spark import reencrypt, rotate_keys
from testing.spark.cluster import POLICY
from tests.rekeying.lake import rows, write_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_TEXT = """
[kms]
client = "keyring"
keyring = "{keyring}"
[footer]
key = "k_footer"
[columns.email]
key = "{key}"
[columns.s]
key = "k_finance"
"""


def policy(folder: Path, key: str) -> Path:
    path = folder / f"{key}.toml"
    path.write_text(_TEXT.format(keyring=POLICY.parent / "dev-keyring.json", key=key))
    return path


def seen(spark: SparkSession, folder: Path) -> list[object]:
    """What Spark reads, sorted, with a lookup by a filter."""
    table: DataFrame = spark.read.parquet(str(folder))
    found = table.where("email = 'user777@example.com'").count()
    return [found, *sorted(table.select("id", "email", "country", "s.a", "tags").collect())]


def test_spark_reads_the_same_rows_before_and_after(
    spark: SparkSession, tmp_path: Path, cold_keys: None
) -> None:
    files = write_lake(tmp_path / "lake")
    before = seen(spark, tmp_path / "lake")
    os.link(files[0], tmp_path / "other name")
    with pytest.warns(UserWarning, match="the old content stays under 1 other name"):
        report = reencrypt(spark, str(tmp_path / "lake"), policy(tmp_path, "k_pii"))
    assert {row.status for row in report.select("status").collect()} == {"reencrypted"}
    assert all(path.read_bytes()[-4:] == b"PARE" for path in files)
    assert seen(spark, tmp_path / "lake") == before
    rotated = rotate_keys(spark, str(tmp_path / "lake"), policy(tmp_path, "k_finance"))
    keys = {row.key for row in rotated.where("column = 'email'").collect()}
    assert keys == {"k_finance"}
    assert seen(spark, tmp_path / "lake") == before
    again = rotate_keys(spark, str(tmp_path / "lake"), policy(tmp_path, "k_finance"))
    assert {row.status for row in again.collect()} == {"unchanged"}


def test_what_spark_wrote_comes_under_another_policy(
    spark: SparkSession, tmp_path: Path, cold_keys: None
) -> None:
    names = ["id", "email", "country"]
    values = [tuple(row.values()) for row in rows().select(names).to_pylist()]
    spark.createDataFrame(values, "id long, email string, country string").write.option(
        "parquet.encryption.column.keys", "k_pii:email"
    ).option("parquet.writer.version", "v2").parquet(str(tmp_path / "t"))
    before = sorted(spark.read.parquet(str(tmp_path / "t")).select("id").collect())
    text = policy(tmp_path, "k_finance").read_text().replace("[columns.s]", "[columns.country]")
    (tmp_path / "p.toml").write_text(text)
    report = sb.reencrypt(str(tmp_path / "t"), policy=tmp_path / "p.toml")
    assert not report.failed
    assert sorted(spark.read.parquet(str(tmp_path / "t")).select("id").collect()) == before
    found = sb.read_table(str(tmp_path / "t"), policy=tmp_path / "p.toml")
    assert found.num_rows == len(before)
