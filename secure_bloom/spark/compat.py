"""All differences between versions of Spark that this package has to handle.

3.5   no Python data sources; DataFrames are not made from Arrow tables or given to table
      functions; descriptions of tables are texts; runs on Java 8
4.0   Python data sources, which get no filters; needs Java 17
4.1   Python data sources that get filters
"""

from __future__ import annotations

import inspect
import itertools
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import SparkUnavailableError, UnsupportedFeatureError, install_hint
from secure_bloom.spark.row_schema import RowSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OLDEST = (3, 5)
#: The first Spark that has it.
_ARROW_FRAMES = _DATA_SOURCES = _TABLE_ARGUMENTS = _DESCRIPTIONS_IN_JSON = (4, 0)
_PUSHED_FILTERS = (4, 1)
#: Major version of Spark -> the oldest Java that it runs on.
_OLDEST_JAVA = {3: 8}
_JAVA_OF_LATER = 17


def spark_version() -> tuple[int, int]:
    """Return the version of PySpark: major and minor number."""
    import pyspark

    return _numbers(pyspark.__version__)


def check_spark_version() -> None:
    """Raise SparkUnavailableError for a PySpark that is too old."""
    found = spark_version()
    if found < _OLDEST:
        raise SparkUnavailableError(
            f"PySpark is {_text(found)}, wanted {_text(_OLDEST)} or later",
            hint=install_hint("spark"),
        )


def oldest_java(spark_core: str) -> int:
    """Return the oldest Java for the Spark whose jar has this name: `spark-core_2.13-4.0.1.jar`."""
    found = re.search(r"-(\d+)\.\d", spark_core)
    return _OLDEST_JAVA.get(int(found[1]), _JAVA_OF_LATER) if found else _JAVA_OF_LATER


def check_data_sources() -> None:
    """Raise UnsupportedFeatureError for a Spark without Python data sources."""
    found = spark_version()
    if found < _DATA_SOURCES:
        raise UnsupportedFeatureError(
            f'format("secure_bloom") is a Python data source, which Spark has since '
            f"{_text(_DATA_SOURCES)}; this is {_text(found)}",
            hint="spark.read.parquet reads the table, in a session with session_config(policy, "
            "writes=False)",
        )


def check_table_arguments() -> None:
    """Raise UnsupportedFeatureError for a Spark whose table functions take no DataFrame."""
    found = spark_version()
    if found < _TABLE_ARGUMENTS:
        raise UnsupportedFeatureError(
            f"hudi_lookup needs Spark {_text(_TABLE_ARGUMENTS)}; this is {_text(found)}",
            hint="secure_bloom.hudi.lookup does the same in one process",
        )


def offers_filters() -> bool:
    """Return whether this Spark can push filters to Python data sources."""
    return spark_version() >= _PUSHED_FILTERS


def frame_of(spark: SparkSession, schema: RowSchema, rows: Iterable[Sequence[object]]) -> DataFrame:
    """Return rows of the driver as a DataFrame."""
    if spark_version() >= _ARROW_FRAMES:
        return spark.createDataFrame(schema.table(rows))
    return spark.createDataFrame(list(map(tuple, rows)), schema.ddl)


def arrow_schema_in_utc(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants for rows of ``schema``, with instants in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # Without this parameter, before 4.2, they always are.
    takes_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    return to_arrow_schema(schema, **zone)


def table_description(spark: SparkSession, name: str) -> dict[str, object]:
    """Return the catalog's description of a table: type, provider, location, serde_library."""
    if spark_version() >= _DESCRIPTIONS_IN_JSON:
        (row,) = spark.sql(f"DESCRIBE TABLE EXTENDED {name} AS JSON").collect()
        described: dict[str, object] = json.loads(row[0])
        return described
    rows = [(row[0], row[1]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()]
    # Columns come first, and may have the same names.  A temporary view has nothing but columns.
    later = itertools.dropwhile(lambda row: not row[0].startswith("# Detailed Table"), rows)
    found = {name.lower().replace(" ", "_"): value for name, value in later}
    return found or {"type": "VIEW"}


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
