"""Convert the types in a Delta table's schema to Arrow types, and partition values to scalars.

A partition value is a text in the log: ``2026-01-31``, ``2026-01-31 12:00:00.123456``, ``true``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from secure_bloom.errors import FormatError, UnsupportedFeatureError

_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d{1,2}),\s*(\d{1,2})\)")
_DEEPEST = 100


def arrow_type(kind: object, depth: int = _DEEPEST) -> pa.DataType:
    """Return the Arrow type of a type in the schema of a Delta table.

    Raises UnsupportedFeatureError, by name, for an unknown type.
    """
    if depth < 0:
        raise FormatError(f"the table's schema nests deeper than {_DEEPEST} levels")
    if isinstance(kind, dict):
        nested = _NESTED.get(str(kind.get("type")))
        if nested is not None:
            return nested(kind, depth - 1)
    if isinstance(kind, str):
        if kind in _PRIMITIVES:
            return _PRIMITIVES[kind]
        if (found := _DECIMAL.fullmatch(kind)) and 0 < int(found[1]) <= 38:
            return pa.decimal128(int(found[1]), int(found[2]))
    name = kind if isinstance(kind, str) else "of a nested kind"
    raise UnsupportedFeatureError(f"the Delta table has a column of type {name}, not known here")


def arrow_field(column: Mapping[str, Any], depth: int = _DEEPEST) -> pa.Field:
    """Return a field of a structure. Any field may be null, whatever the schema says."""
    name = column.get("name")
    if not isinstance(name, str):
        raise FormatError("a field of the table's schema has no name")
    return pa.field(name, arrow_type(column.get("type"), depth))


def _structure(kind: Mapping[str, Any], depth: int) -> pa.DataType:
    return pa.struct([arrow_field(column, depth) for column in kind.get("fields") or ()])


def _array(kind: Mapping[str, Any], depth: int) -> pa.DataType:
    return pa.list_(arrow_type(kind.get("elementType"), depth))


def _map(kind: Mapping[str, Any], depth: int) -> pa.DataType:
    key = arrow_type(kind.get("keyType"), depth)
    return pa.map_(key, arrow_type(kind.get("valueType"), depth))


_NESTED: dict[str, Callable[[Mapping[str, Any], int], pa.DataType]] = {
    "struct": _structure,
    "array": _array,
    "map": _map,
}


def partition_value(text: str, of: pa.DataType) -> pa.Scalar:
    """Return a partition value of the log as a scalar.

    Raises FormatError for a text that is not a value of the type.
    """
    try:
        if pa.types.is_timestamp(of):
            # Partition values of instants are written in UTC, with the zone or without.
            naive = pa.scalar(text.removesuffix("Z")).cast(pa.timestamp(of.unit))
            return naive.cast(of)
        return pa.scalar(text).cast(of)
    except pa.ArrowException:
        # The cause is left out: its text quotes the value.
        raise FormatError(f"a partition value of the log is no {of}") from None
