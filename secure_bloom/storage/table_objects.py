"""Tables of other libraries that are given as paths: where they are, and how to access them.

    table_path(DeltaTable("s3://lake/t"))      "s3://lake/t"
    table_path(catalog.load_table("db.t"))     "s3://lake/db/t/metadata/00003-....metadata.json"

The classes are recognized by their names, so neither library is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from secure_bloom.errors import PolicyError

#: What people give as a path, and what they can give instead.
_HINTS: Final[Mapping[str, str]] = {
    "polars": "give the paths that the frame was read from",
    "pyarrow": "give the paths: dataset.files, or the path of the file",
    "pandas": "give the paths that the frame was read from",
    "duckdb": "give the paths, or write SQL: sb.sql(\"SELECT ... FROM 'lake/'\")",
    "pyspark": "give the path of the frame's table, or on Spark the table's name",
    "secure_bloom": "ask the table itself: table.read(...), table.probe(...)",
}


def table_path(given: object) -> str | None:
    """Return the path of a table of deltalake or pyiceberg, or None for another object."""
    if _is(given, "deltalake", "DeltaTable"):
        table: Any = given
        return str(table.table_uri)
    if _is(given, "pyiceberg", "Table"):
        iceberg: Any = given
        return str(iceberg.metadata_location)
    return None


def name_in_catalog(given: object) -> str | None:
    """Return the name of a pyiceberg table for verbs that commit, or None for another object."""
    if not _is(given, "pyiceberg", "Table"):
        return None
    table: Any = given
    return f"iceberg://{table.catalog.name}/{'.'.join(table.name())}"


def version_of(given: object) -> int | None:
    """Return the version at which a table of deltalake was opened, or None."""
    if not _is(given, "deltalake", "DeltaTable"):
        return None
    table: Any = given
    return int(table.version())


def options_of(given: object) -> Mapping[str, str]:
    """Return the options by which a table of either library opens its files."""
    if _is(given, "deltalake", "DeltaTable"):
        # It has no other way to get them.
        return dict(getattr(given, "_storage_options", None) or {})
    if _is(given, "pyiceberg", "Table"):
        table: Any = given
        return {name: str(value) for name, value in table.io.properties.items()}
    return {}


def refused_path(given: object) -> PolicyError:
    """Return the error for an object that is no path. Its hint says what to give instead."""
    kind = type(given)
    hint = _HINTS.get(kind.__module__.partition(".")[0])
    return PolicyError(
        f"paths are of type {kind.__name__}, wanted a text, a Path, a list of them, or a table of "
        "deltalake or pyiceberg",
        hint=hint,
    )


def _is(given: object, package: str, name: str) -> bool:
    return any(
        it.__name__ == name and it.__module__.partition(".")[0] == package
        for it in type(given).__mro__
    )
