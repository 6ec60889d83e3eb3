"""Paimon's types as Parquet types: how Paimon stores a column, and how a person reads its type."""

from __future__ import annotations

from typing import TypeAlias

from secure_bloom.paimon.data_types import (
    MAX_MILLIS_PRECISION,
    DataType,
    TypeRoot,
)
from secure_bloom.parquet.logical_types import Kind, describe, logical_type
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    FieldRepetitionType,
    SchemaElement,
    Type,
)

_Stored: TypeAlias = tuple[Type, ConvertedType | None]

#: How Paimon stores its types in Parquet.  BINARY is taken as bytes of any length.
_STORED: dict[TypeRoot, _Stored] = {
    TypeRoot.TINYINT: (Type.INT32, ConvertedType.INT_8),
    TypeRoot.SMALLINT: (Type.INT32, ConvertedType.INT_16),
    TypeRoot.INT: (Type.INT32, None),
    TypeRoot.BIGINT: (Type.INT64, None),
    TypeRoot.FLOAT: (Type.FLOAT, None),
    TypeRoot.DOUBLE: (Type.DOUBLE, None),
    TypeRoot.DATE: (Type.INT32, ConvertedType.DATE),
    TypeRoot.TIME: (Type.INT32, ConvertedType.TIME_MILLIS),
    TypeRoot.CHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.VARCHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.STRING: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.BINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.VARBINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.BYTES: (Type.BYTE_ARRAY, None),
}

#: How Paimon stores timestamps: in milliseconds, in microseconds, and finer.
_STORED_TIMESTAMPS: tuple[_Stored, ...] = (
    (Type.INT64, ConvertedType.TIMESTAMP_MILLIS),
    (Type.INT64, ConvertedType.TIMESTAMP_MICROS),
    (Type.INT96, None),
)


def leaf_of(name: str, data_type: DataType) -> Leaf:
    """The leaf of a column that Paimon stores in this type, for a probe without a data file."""
    root, parameter = data_type.root, data_type.parameter or 0
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        stored = _STORED_TIMESTAMPS[(parameter > MAX_MILLIS_PRECISION) + (parameter > 6)]
    else:
        stored = _STORED[root]
    physical, converted = stored
    element = SchemaElement.of(
        name=name, type=physical, repetition_type=FieldRepetitionType.OPTIONAL
    )
    if converted is not None:
        element.converted_type = converted
    return Leaf(
        path=(name,), element=element, type=physical, repetitions=(FieldRepetitionType.OPTIONAL,)
    )


def describe_type(leaf: Leaf) -> str:
    """A column's type for a person, with the bits or the unit that the form depends on."""
    logical = logical_type(leaf.element)
    if logical.kind is Kind.INTEGER:
        return f"{describe(leaf.element)} of {logical.bits} bits"
    if logical.kind in (Kind.TIME, Kind.TIMESTAMP):
        return f"{describe(leaf.element)} in units of {logical.unit:,} ns"
    return describe(leaf.element)
