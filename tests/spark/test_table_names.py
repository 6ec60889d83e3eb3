"""Names in Spark's catalog mean the files of tables; what has no Parquet files is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.spark import add_bloom_filters, reencrypt
from secure_bloom.spark.job_files import job_files
from secure_bloom.storage import find_files
from testing.spark.parquet_java import PLAIN_WRITE
from testing.tables import keyring_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


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
        with job_files(spark, "spark_catalog.lake.`numbers`") as files:
            assert list(files) == find_files(tmp_path / "far")

    def test_the_files_of_a_table_have_the_rules_of_its_name(
        self, spark: SparkSession, database: str, tmp_path: Path
    ) -> None:
        rows = spark.range(20).selectExpr("id", "string(id) AS email")
        rows.write.options(**PLAIN_WRITE, path=str(tmp_path / "far")).saveAsTable("lake.people")
        (tmp_path / "keyring.json").write_text(keyring_json())
        (tmp_path / "keyring.json").chmod(0o600)
        policy = tmp_path / "policy.toml"
        policy.write_text(
            '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n[footer]\nkey = "k_footer"\n'
            '[tables."lake.people".columns.email]\nkey = "k_pii"\nbloom = true\n'
            '[tables."orders/*".columns.email]\nkey = "k_pii"\n'
        )
        reencrypt(spark, "lake.people", policy).collect()
        report = add_bloom_filters(spark, "lake.people", policy=policy).collect()
        assert {(row.column, row.action) for row in report} == {("email", "added")}

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
        with job_files(spark, "lake.parquet") as files:
            assert list(files) == [str(tmp_path / "lake.parquet")]

    def test_what_is_no_table_of_parquet_files_is_refused(
        self, spark: SparkSession, database: str
    ) -> None:
        spark.range(1).write.format("json").saveAsTable("lake.texts")
        spark.sql("CREATE VIEW lake.seen AS SELECT * FROM lake.texts")
        spark.range(1).createOrReplaceTempView("fleeting")
        for name, reason in (("lake.texts", "json"), ("lake.seen", "view"), ("fleeting", "view")):
            with pytest.raises(UnsupportedFeatureError, match=reason), job_files(spark, name):
                pass
        with pytest.raises(PolicyError, match="no such file"), job_files(spark, "lake.nothing"):
            pass

    def test_a_catalog_that_the_session_does_not_have_is_one_sentence(
        self, spark: SparkSession
    ) -> None:
        with pytest.raises(PolicyError) as caught:
            add_bloom_filters(spark, "prod.db.people", columns=["id"])
        assert str(caught.value) == (
            "prod.db.people: the session has no catalog prod: spark.sql.catalog.prod is not set"
        )
        assert "iceberg://prod/" in str(caught.value.hint)
