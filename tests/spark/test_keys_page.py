"""The Java class that docs/keys.md shows as a template serves Spark, beside its twin in Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import secure_bloom as sb
from secure_bloom.spark import session_config
from secure_bloom.spark.jvm import compile_jar
from tests.test_keys_page import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("cold_keys")]


def test_the_template_for_the_jvm_serves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [java] = blocks("java")
    [python] = [text for text in blocks("python") if "class OurKms" in text]
    [properties] = [text for text in blocks("python") if "our-kms.jar" in text]
    (tmp_path / "our_kms_beside_spark.py").write_text(python)
    monkeypatch.syspath_prepend(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[kms]\nclient = "our_kms_beside_spark:OurKms"\ntenant = "lake"\n'
        '[footer]\nkey = "lake/footer"\n[columns.email]\nkey = "lake/pii"\nbloom = true\n'
    )
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"session_config": session_config}
    exec(properties, names)
    config: dict[str, str] = names["config"]
    assert config.pop("spark.jars") == "/jars/our-kms.jar"  # this session is there already
    options = {name.removeprefix("spark.hadoop."): value for name, value in config.items()}
    spark.sql(f"ADD JAR '{compile_jar('OurKms', java.encode())}'")
    rows = spark.range(20).selectExpr("id", "concat('user', id) AS email")
    rows.write.options(**options).parquet(str(tmp_path / "t"))
    assert spark.read.options(**options).parquet(str(tmp_path / "t")).count() == 20
    assert not sb.add_bloom_filters(tmp_path / "t", policy=policy).failed
    found = sb.read_table(tmp_path / "t", where="email = 'user7'", policy=policy)
    assert found["id"].to_pylist() == [7]
