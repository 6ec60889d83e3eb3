"""The columns of a table as Spark's own reader would have them, from the files' footers.

What a leaf is follows its Parquet type, lists, maps and structures follow Arrow's reading of the
schema.  Every column may be null, whatever a file says of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.ordered_pool import in_order
from secure_bloom.parquet.logical_types import Kind, Logical, describe, logical_type
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.reading.table.footer import FileFooter, read_footer
from secure_bloom.reading.table.footer_scan import FooterScanner
from secure_bloom.reading.table.hive_partitions import Values, partition_values
from secure_bloom.reading.table.table_schema import FileColumns, unite
from secure_bloom.spark.partition_types import folder_type
from secure_bloom.storage import CountedFile, find_unmanaged, is_object_uri, open_input

#: Requests to an object store that wait at a time; a local disk answers at once.
_REMOTE_WORKERS = 16
_MILLIS, _MICROS = 1_000_000, 1_000
#: Under which Spark writes its own schema into a footer.
_WRITTEN = "org.apache.spark.sql.parquet.row.metadata"
_INTERVALS: dict[tuple[str, ...], Callable[[int, int], st.DataType]] = {
    ("day", "hour", "minute", "second"): st.DayTimeIntervalType,
    ("year", "month"): st.YearMonthIntervalType,
}
_INTERVAL = re.compile(r"interval (\w+)(?: to (\w+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """A table's columns: ``stored`` as the files' columns are read, ``spark`` as Spark gets them.

    ``spark`` ends with the columns that the names of folders make; ``stored`` has none of those.
    ``instants`` are the dotted paths of INT96 columns: instants that ``stored`` has without a zone.
    """

    stored: pa.Schema
    spark: st.StructType
    instants: frozenset[str]


def table_schema(
    paths: list[str], resolver: KeyResolver, choose: Callable[[list[str]], list[str]]
) -> TableSchema:
    """The schema of the files at ``paths``; of all names of columns ``choose`` gives the wanted.

    Raises UnsupportedFeatureError, with the column, for a type that Spark does not have, and what
    reading a footer raises.
    """
    files = find_unmanaged(paths)
    known = FooterScanner()

    def footer_of(path: str) -> FileFooter:
        with located(path=path), open_input(path) as opened:
            return read_footer(CountedFile(opened), resolver, known)

    kinds: dict[int, _Kind] = {}
    schemas = []
    workers = _REMOTE_WORKERS if any(map(is_object_uri, files)) else 1
    for footer in in_order(footer_of, files, workers):
        schemas.append((footer.path, footer.columns.arrow))
        if id(footer.columns) not in kinds:
            kinds[id(footer.columns)] = _Kind.of(footer)
    folders = _folder_fields([partition_values(path, paths) for path in files])
    stored = _without(unite(schemas), folders)
    fields = [
        folders[name] if name in folders else _field(stored.field(name), kinds.values())
        for name in choose([*stored.names, *folders])
    ]
    return TableSchema(
        stored=stored,
        spark=st.StructType(fields),
        instants=_instants(kinds.values()) - folders.keys(),
    )


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """The Arrow schema in which Spark wants the rows of ``schema``."""
    found: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return found


def _folder_fields(values: list[Values]) -> dict[str, st.StructField]:
    names = dict.fromkeys(name for found in values for name in found)
    return {
        name: st.StructField(name, folder_type([v[name] for v in values if name in v]))
        for name in names
    }


def _without(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    left_out = set(names)
    return pa.schema([field for field in schema if field.name not in left_out])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Files with one schema: their columns, and the types that only their writer knew."""

    columns: FileColumns
    written: dict[str, st.DataType]

    @classmethod
    def of(cls, footer: FileFooter) -> _Kind:
        return cls(columns=footer.columns, written=_written_types(footer))


def _instants(kinds: Iterable[_Kind]) -> frozenset[str]:
    """The paths at which every file that has them has INT96."""
    leaves = [leaf for kind in kinds for leaf in kind.columns.leaves]
    others = {leaf.name for leaf in leaves if leaf.type is not Type.INT96}
    return frozenset({leaf.name for leaf in leaves} - others)


def _field(stored: pa.Field, kinds: Iterable[_Kind]) -> st.StructField:
    """The column as the files have it that store it in the table's own type."""
    name = stored.name
    kind = next((k for k in kinds if _has(k.columns.arrow, stored)), None)
    with located(column=name):
        if kind is None:
            return st.StructField(name, _merged(stored.type))
        if name in kind.written:
            return st.StructField(name, kind.written[name])
        leaves = iter([kind.columns.leaves[ordinal] for ordinal in kind.columns.below(name)])
        return st.StructField(name, _spark_type(stored.type, leaves))


def _has(schema: pa.Schema, field: pa.Field) -> bool:
    return field.name in schema.names and schema.field(field.name).type == field.type


def _merged(stored: pa.DataType) -> st.DataType:
    """The type of a column that no file has alone: the files' types were joined."""
    try:
        found = from_arrow_type(stored, prefer_timestamp_ntz=True)
        # A decimal of more digits than Spark's is found out only on the way back.
        arrow_schema(st.StructType([st.StructField("", found)]))
    except (PySparkException, ValueError):
        raise UnsupportedFeatureError(
            f"the files' types make up {stored}, which Spark does not have", hint=_LEAVE_OUT
        ) from None
    return found


def _spark_type(stored: pa.DataType, leaves: Iterator[Leaf]) -> st.DataType:
    """The type of a column whose leaves are next in ``leaves``."""
    if isinstance(stored, pa.BaseExtensionType) and pa.types.is_nested(stored.storage_type):
        return _spark_type(stored.storage_type, leaves)
    if pa.types.is_map(stored):
        key = _spark_type(stored.key_type, leaves)
        return st.MapType(key, _spark_type(stored.item_type, leaves))
    if pa.types.is_struct(stored):
        return st.StructType([st.StructField(f.name, _spark_type(f.type, leaves)) for f in stored])
    if pa.types.is_nested(stored):
        return st.ArrayType(_spark_type(stored.value_type, leaves))
    return _leaf_type(next(leaves))


def _leaf_type(leaf: Leaf) -> st.DataType:
    logical = logical_type(leaf.element)
    found = _TYPES[logical.kind](leaf, logical)
    if found is None:
        raise UnsupportedFeatureError(
            f"Spark has no type for {describe(leaf.element)}", hint=_LEAVE_OUT
        )
    return found


_LEAVE_OUT = 'leave the column out: .option("columns", "the others, ...")'

_INTEGERS: dict[tuple[int, bool], st.DataType] = {
    (8, True): st.ByteType(),
    (16, True): st.ShortType(),
    (32, True): st.IntegerType(),
    (64, True): st.LongType(),
    (8, False): st.ShortType(),
    (16, False): st.IntegerType(),
    (32, False): st.LongType(),
    (64, False): st.DecimalType(20, 0),
}


def _float(leaf: Leaf, _: Logical) -> st.DataType:
    return st.FloatType() if leaf.width == 4 else st.DoubleType()


def _decimal(leaf: Leaf, logical: Logical) -> st.DataType | None:
    digits = leaf.decimal_digits
    if digits is None:
        raise FormatError(f"DECIMAL column {leaf.name} has no precision")
    most = 38
    return st.DecimalType(digits, logical.scale) if digits <= most else None


def _time(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.is_utc or logical.unit == _MILLIS:
        return None
    return st.TimeType(6 if logical.unit == _MICROS else 9)


def _timestamp(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.unit not in (_MILLIS, _MICROS):
        return None
    return st.TimestampType() if logical.is_utc else st.TimestampNTZType()


_TYPES: dict[Kind, Callable[[Leaf, Logical], st.DataType | None]] = {
    Kind.TEXT: lambda _leaf, _logical: st.StringType(),
    Kind.BYTES: lambda _leaf, _logical: st.BinaryType(),
    Kind.INTEGER: lambda _leaf, logical: _INTEGERS.get((logical.bits, logical.signed)),
    Kind.FLOAT: _float,
    Kind.FLOAT16: lambda _leaf, _logical: None,
    Kind.DECIMAL: _decimal,
    Kind.DATE: lambda _leaf, _logical: st.DateType(),
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.INT96: lambda _leaf, _logical: st.TimestampType(),
    Kind.UUID: lambda _leaf, _logical: None,
    Kind.BOOLEAN: lambda _leaf, _logical: st.BooleanType(),
}


def _written_types(footer: FileFooter) -> dict[str, st.DataType]:
    """Intervals, which only Spark's schema in the footer tells from numbers.

    Of that schema nothing else is taken: a type of a user's own in it would run code of the file's
    choice.
    """
    marks = footer.metadata.key_value_metadata or []
    text = next((mark.value for mark in marks if mark.key == _WRITTEN), None)
    try:
        fields: Any = json.loads(text or "{}").get("fields", [])
        named = [(field["name"], field["type"]) for field in fields]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Damaged or of another version: then the Parquet types have to do.
        return {}
    found = {name: _interval(text) for name, text in named if isinstance(text, str)}
    return {name: interval for name, interval in found.items() if interval is not None}


def _interval(text: str) -> st.DataType | None:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    first, last = match[1], match[2] or match[1]
    for fields, kind in _INTERVALS.items():
        if first in fields and last in fields:
            return kind(fields.index(first), fields.index(last))
    return None


def check_carried(schema: st.StructType) -> None:
    """Raise UnsupportedFeatureError for a column that no Python data source may have."""
    for field in schema:
        try:
            arrow_schema(st.StructType([field]))
        except PySparkException:
            raise UnsupportedFeatureError(
                f"Spark takes no {field.dataType.simpleString()} from a Python data source",
                hint=_LEAVE_OUT,
                column=field.name,
            ) from None
