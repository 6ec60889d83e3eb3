"""Names of tables in Spark's catalog, and the folders of their files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from secure_bloom.encryption.access import GivenPolicy, loaded_policy
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.spark.compat import table_description
from secure_bloom.spark.java_errors import reason_of
from secure_bloom.storage.listing import expand
from secure_bloom.storage.paths import is_object_uri, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from secure_bloom.encryption.policy import KeyPolicy

_PART = r"(?:[A-Za-z0-9_]+|`(?:[^`]|``)+`)"


#: A table, with its schema and catalog if it has them.
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")


_PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


def table_location(spark: SparkSession, text: str) -> str:
    """Return the folder of the table that ``text`` names, or ``text`` itself if it is a path.

    A file or folder of that name takes precedence over a table. Raises
    :class:`UnsupportedFeatureError` for views and for tables whose files are not Parquet.
    """
    if not _NAME.fullmatch(text) or _is_there(text) or not _has_table(spark, text):
        return text
    described = _described(spark, text)
    if described.get("type") == "VIEW":
        raise UnsupportedFeatureError(f"{text} is a view", hint="name the tables that it reads")
    if not _is_parquet(described) or "location" not in described:
        raise UnsupportedFeatureError(
            f"{text} is no table of Parquet files: its provider is {described.get('provider')}",
            hint="filters are added to the files of tables USING PARQUET",
        )
    location = str(described["location"])
    return location if is_object_uri(location) else local_path(location)


def with_named_tables(
    spark: SparkSession, policy: GivenPolicy, paths: Sequence[str]
) -> KeyPolicy | None:
    """Return the policy. It knows the folders of the tables that ``paths`` name in the catalog."""
    loaded = loaded_policy(policy)
    if loaded is None or not loaded.tables:
        return loaded
    folders = {table_location(spark, path): path for path in paths}
    return loaded.with_tables_at({it: name for it, name in folders.items() if it != name})


def _has_table(spark: SparkSession, name: str) -> bool:
    """Return whether a catalog of the session has the table.

    Raises PolicyError for a catalog that the session does not have, or that cannot be asked.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        return bool(spark.catalog.tableExists(name))
    except (Py4JError, PySparkException) as error:
        catalog = name.partition(".")[0].strip("`")
        if name.count(".") == 2 and spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None:
            raise PolicyError(
                f"the session has no catalog {catalog}: spark.sql.catalog.{catalog} is not set",
                hint="set the catalog when the session starts; or name an Iceberg table by its "
                f"catalog in the driver's pyiceberg: iceberg://{catalog}/NAMESPACE.TABLE",
                path=name,
            ) from error
        raise PolicyError(
            f"Spark cannot look the table up: {reason_of(error)}",
            hint="a folder with this name is ./NAME",
            path=name,
        ) from error


def _is_there(text: str) -> bool:
    try:
        return bool(expand(text))
    except PolicyError:
        return False


def _is_parquet(described: dict[str, object]) -> bool:
    return (
        str(described.get("provider")).lower() == "parquet"
        or described.get("serde_library") == _PARQUET_SERDE
    )


def _described(spark: SparkSession, name: str) -> dict[str, object]:
    """Return the catalog's description of a table."""
    from pyspark.errors import AnalysisException

    try:
        return table_description(spark, name)
    except AnalysisException as error:
        raise UnsupportedFeatureError(
            f"{name} is a table of another catalog, which does not say where its files are",
            hint="Delta, Iceberg and Hudi tables record their files in a log, and are refused here",
        ) from error
