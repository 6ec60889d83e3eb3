"""Convert the types in the schema of a Paimon table to Arrow types, and its rows' values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes.paimon.rows import Value, decimal_of
from secure_bloom.lakes.paimon.schema import DEEPEST, AtomicType, PaimonField

_PRIMITIVES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
}
_NANOS_OF = {"ms": 1_000_000, "us": 1000, "ns": 1}


def arrow_field(column: PaimonField, depth: int = DEEPEST) -> pa.Field:
    """Return a column. It may be null, whatever the schema says: older files may lack it."""
    return pa.field(column.name, arrow_type(column, depth))


def arrow_type(column: PaimonField, depth: int = DEEPEST) -> pa.DataType:
    """Return the Arrow type of a column. Raises UnsupportedFeatureError for an unknown type."""
    if depth < 0:
        raise FormatError(f"the table's schema nests deeper than {DEEPEST} levels")
    kind = column.atomic
    if kind is not None and (found := _atomic(kind)) is not None:
        return found
    if isinstance(column.type, dict):
        name = str(column.type.get("type")).removesuffix(" NOT NULL")
        if name in _NESTED:
            return _NESTED[name](column, column.type, depth - 1)
    shown = kind.root if kind is not None else "of a nested kind"
    raise UnsupportedFeatureError(f"the Paimon table has a column of type {shown}, not known here")


def _atomic(kind: AtomicType) -> pa.DataType | None:
    if kind.root in _PRIMITIVES:
        return _PRIMITIVES[kind.root]
    if kind.root == "DECIMAL":
        precision = 10 if kind.length is None else kind.length
        return pa.decimal128(precision, kind.scale) if 0 < precision <= 38 else None
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        unit = "ms" if kind.precision <= 3 else "us" if kind.precision <= 6 else "ns"
        return pa.timestamp(unit, "UTC" if kind.root == "TIMESTAMP_LTZ" else None)
    return None


def _inside(column: PaimonField, kind: object, depth: int) -> pa.DataType:
    return arrow_type(PaimonField(id=column.id, name=column.name, type=kind), depth)


def _row(column: PaimonField, kind: Mapping[str, Any], depth: int) -> pa.DataType:
    fields = kind.get("fields")
    if not isinstance(fields, list) or not all(isinstance(each, dict) for each in fields):
        raise FormatError(f"column {column.name} has no list of fields")
    return pa.struct(
        [pa.field(str(it.get("name")), _inside(column, it.get("type"), depth)) for it in fields]
    )


def _array(column: PaimonField, kind: Mapping[str, Any], depth: int) -> pa.DataType:
    return pa.list_(_inside(column, kind.get("element"), depth))


def _map(column: PaimonField, kind: Mapping[str, Any], depth: int) -> pa.DataType:
    key = _inside(column, kind.get("key"), depth)
    return pa.map_(key, _inside(column, kind.get("value"), depth))


def _multiset(column: PaimonField, kind: Mapping[str, Any], depth: int) -> pa.DataType:
    return pa.map_(_inside(column, kind.get("element"), depth), pa.int32())


_NESTED: dict[str, Callable[[PaimonField, Mapping[str, Any], int], pa.DataType]] = {
    "ROW": _row,
    "ARRAY": _array,
    "MAP": _map,
    "MULTISET": _multiset,
}


def partition_scalar(value: Value, column: PaimonField) -> pa.Scalar:
    """Return a value of a partition, as the manifest has it, as a scalar."""
    wanted = arrow_type(column)
    if value is None:
        return pa.scalar(None, wanted)
    if pa.types.is_decimal(wanted) and column.atomic is not None:
        return pa.scalar(decimal_of(value, column.atomic), wanted)
    if pa.types.is_timestamp(wanted):
        nanos = value[0] * 1_000_000 + value[1]
        return pa.scalar(nanos // _NANOS_OF[wanted.unit], pa.int64()).cast(wanted)
    if isinstance(value, bytes) and pa.types.is_string(wanted):
        return pa.scalar(value, pa.binary()).cast(wanted)
    if isinstance(value, int) and pa.types.is_temporal(wanted):
        return pa.scalar(value, pa.int32()).cast(wanted)
    return pa.scalar(value, wanted)
