"""What each version of Spark does with filters that we add, and which jobs run on it.

`make test-spark VERSION=3.5` runs this on another version, and writes its row of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from secure_bloom.errors import SecureBloomError, UnsupportedFeatureError
from secure_bloom.spark import (
    add_bloom_filters,
    advise,
    audit,
    reencrypt,
    register,
    rotate_keys,
)
from secure_bloom.spark.compat import spark_version
from secure_bloom.spark.jvm import spark_jars
from secure_bloom.spark.scan_metrics import collect_scanned, rows_scanned
from testing.compatibility import Compatibility, Support
from testing.spark.cluster import POLICY
from testing.spark.parquet_java import PLAIN_WRITE, only_bloom_filters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 4000
Record = Callable[[str, str], None]


@pytest.fixture
def record(compatibility: Compatibility) -> Record:
    """Take what this version of Spark did."""
    (jar,) = (jar.stem for jar in spark_jars() if jar.name.startswith("parquet-hadoop-"))
    parquet_java = jar.removeprefix("parquet-hadoop-")

    def take(feature: str, shown: str) -> None:
        compatibility.record(Support(pyspark.__version__, parquet_java, feature, shown))

    return take


def written(spark: SparkSession, folder: Path, **options: str) -> Path:
    rows = spark.range(ROWS).selectExpr(
        "id",
        "concat('user', id, '@example.com') AS email",
        "concat('DE', 1000000 + id) AS iban",
        "concat('N', id) AS national_id",
        "element_at(array('DE', 'FR', 'IT'), cast(id % 3 AS int) + 1) AS country",
    )
    rows.repartition(2).write.options(**options).parquet(str(folder))
    return folder


@pytest.mark.parametrize("protection", ["encrypted", pytest.param("plain", marks=pytest.mark.slow)])
def test_filters_that_we_add_are_used(
    spark: SparkSession, tmp_path: Path, record: Record, protection: str
) -> None:
    options = PLAIN_WRITE if protection == "plain" else {}
    policy = None if protection == "plain" else POLICY
    table = written(spark, tmp_path / "table", **options)
    before = sorted(spark.read.parquet(str(table)).collect())
    report = add_bloom_filters(spark, table, policy, columns=["id", "email"]).collect()
    assert {(row.status, row.action) for row in report} == {("added", "added")}
    people = spark.read.parquet(str(table))
    assert sorted(people.collect()) == before
    with only_bloom_filters(spark):
        present, scanned = collect_scanned(people.where("email = 'user77@example.com'"))
        assert [row.id for row in present] == [77]
        assert scanned < ROWS
        assert rows_scanned(people.where("email = 'nobody@example.com'")) == 0
        assert rows_scanned(people.where("id = -1")) == 0
    again = add_bloom_filters(spark, table, policy, columns=["id", "email"]).collect()
    assert {row.status for row in again} == {"unchanged"}
    record(f"step, {protection}", "lookups")


def test_the_other_jobs_run(spark: SparkSession, tmp_path: Path, record: Record) -> None:
    table = written(spark, tmp_path / "table", **PLAIN_WRITE)
    done = reencrypt(spark, table, POLICY).collect()
    assert {row.error for row in done} == {None}
    assert {path.read_bytes()[:4] for path in table.glob("*.parquet")} == {b"PARE"}
    assert spark.read.parquet(str(table)).count() == ROWS
    record("reencrypt", "yes")
    moved = rotate_keys(spark, table, POLICY).collect()
    assert {row.error for row in moved} == {None}
    record("rotate_keys", "yes")
    add_bloom_filters(spark, table, POLICY)
    assert audit(spark, table, POLICY).where("NOT ignored").collect() == []
    record("audit", "yes")
    assert {column.column for column in advise(spark, table, POLICY).columns} >= {"email", "iban"}
    record("advise", "yes")


def test_the_data_source_reads_or_says_what_it_needs(
    spark: SparkSession, tmp_path: Path, record: Record
) -> None:
    table = written(spark, tmp_path / "table")
    if spark_version() < (4, 0):
        with pytest.raises(UnsupportedFeatureError, match=r"since 4\.0; this is 3\.5") as caught:
            register(spark)
        assert "session_config" in str(caught.value.hint)
        record("data source", "no")
        return
    register(spark)
    source = spark.read.format("secure_bloom").option("policy", str(POLICY))
    found = source.option("where", "email = 'user77@example.com'").load(str(table))
    assert [row.id for row in found.collect()] == [77]
    record("data source", "yes")


def test_tables_of_hudi_are_searched_or_the_version_that_can_is_named(
    spark: SparkSession, tmp_path: Path, record: Record
) -> None:
    from secure_bloom.spark.hudi import hudi_lookup

    keys = spark.createDataFrame([("a",)], "key string")
    with pytest.raises(SecureBloomError) as caught:
        hudi_lookup(spark, tmp_path / "nothing", keys)
    has_it = spark_version() >= (4, 0)
    assert ("needs Spark 4.0" in str(caught.value)) is not has_it
    record("hudi_lookup", "yes" if has_it else "no")
