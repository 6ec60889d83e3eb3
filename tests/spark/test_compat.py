"""The same on each version of Spark, tried on the one that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from secure_bloom.errors import SparkUnavailableError, UnsupportedFeatureError
from secure_bloom.spark import compat
from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("version", [(3, 5), compat.spark_version()])
@pytest.mark.parametrize("rows", [[("a", 1, ["x"]), (None, None, None)], []])
def test_rows_of_the_driver_are_the_same_with_and_without_arrow(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int],
    rows: list[tuple[object, ...]],
) -> None:
    monkeypatch.setattr(compat, "spark_version", lambda: version)
    schema = RowSchema({"a": "string", "b": "int", "c": "array<string>"})
    frame = compat.frame_of(spark, schema, rows)
    assert frame.schema.simpleString() == schema.struct.replace(": ", ":").replace(", ", ",")
    assert list(map(tuple, frame.collect())) == rows


@pytest.mark.parametrize("version", [(3, 5), compat.spark_version()])
def test_a_table_is_described_the_same_by_texts_and_by_json(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    monkeypatch.setattr(compat, "spark_version", lambda: version)
    spark.sql("CREATE TABLE described (type string, location int) USING parquet")
    try:
        found = compat.table_description(spark, "described")
    finally:
        spark.sql("DROP TABLE described")
    assert str(found["provider"]).lower() == "parquet"
    assert str(found["type"]) == "MANAGED"
    assert str(found["location"]).startswith("file:")


@pytest.mark.parametrize("version", [(2, 4), (3, 4)])
def test_an_old_spark_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int]
) -> None:
    monkeypatch.setattr(compat, "spark_version", lambda: version)
    with pytest.raises(SparkUnavailableError, match=r"PySpark is \d\.4, wanted 3\.5") as caught:
        compat.check_spark_version()
    assert "pip install 'secure-bloom[spark]'" in str(caught.value.hint)


@pytest.mark.parametrize("check", [compat.check_data_sources, compat.check_table_arguments])
def test_what_spark_3_5_lacks_is_named(monkeypatch: pytest.MonkeyPatch, check: Any) -> None:
    monkeypatch.setattr(compat, "spark_version", lambda: (3, 5))
    with pytest.raises(UnsupportedFeatureError, match=r"this is 3\.5") as caught:
        check()
    assert caught.value.hint
    monkeypatch.setattr(compat, "spark_version", lambda: (4, 0))
    check()


@pytest.mark.parametrize(
    ("jar", "java"),
    [
        ("spark-core_2.12-3.5.9.jar", 8),
        ("spark-core_2.13-4.0.1.jar", 17),
        ("spark-core_2.13-5.0.0-preview1.jar", 17),
        ("our-own.jar", 17),
    ],
)
def test_each_spark_has_an_oldest_java(jar: str, java: int) -> None:
    assert compat.oldest_java(jar) == java
