"""Every difference between the versions of Spark that this package meets, in one place.

3.5   no Python data sources, DataFrames are not made of Arrow tables, Java 8 is enough
4.0   Python data sources, without filters; Java 17
4.1   Python data sources with filters
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def spark_version() -> tuple[int, int]:
    """Return the version of PySpark: major and minor number."""
    import pyspark

    major, minor = pyspark.__version__.split(".")[:2]
    return int(major), int(minor)


def frame_of(spark: SparkSession, schema: RowSchema, rows: Iterable[Sequence[object]]) -> DataFrame:
    """Return rows of the driver as a DataFrame."""
    if spark_version() >= (4, 0):
        return spark.createDataFrame(schema.table(rows))
    return spark.createDataFrame(list(map(tuple, rows)), schema.ddl)
