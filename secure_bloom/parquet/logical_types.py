"""The logical type of a column, from ``logicalType`` or the older ``converted_type``.

A logical type says what the bytes of a physical type mean.  LogicalTypes.md.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    DecimalType,
    LogicalType,
    SchemaElement,
    TimestampType,
    TimeType,
    TimeUnit,
    Type,
)
from secure_bloom.parquet.structures.records import known_member

#: The Julian day number of 1970-01-01: INT96 timestamps count Julian days.
JULIAN_EPOCH = 2_440_588


class Kind(enum.StrEnum):
    """The meaning of a column's values to a person."""

    TEXT = "text"
    BYTES = "bytes"
    INTEGER = "integer"
    FLOAT = "float"
    FLOAT16 = "float16"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INT96 = "int96"
    UUID = "uuid"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logical:
    """A kind with its parameters: ``unit`` in nanoseconds, ``bits`` and ``signed`` of integers."""

    kind: Kind
    scale: int = 0
    unit: int = 1
    is_utc: bool = True
    bits: int = 0
    signed: bool = True


_MILLIS, _MICROS, _NANOS = 1_000_000, 1_000, 1

_PHYSICAL = {
    Type.BOOLEAN: Logical(kind=Kind.BOOLEAN),
    Type.INT32: Logical(kind=Kind.INTEGER, bits=32),
    Type.INT64: Logical(kind=Kind.INTEGER, bits=64),
    Type.INT96: Logical(kind=Kind.INT96),
    Type.FLOAT: Logical(kind=Kind.FLOAT),
    Type.DOUBLE: Logical(kind=Kind.FLOAT),
    Type.BYTE_ARRAY: Logical(kind=Kind.BYTES),
    Type.FIXED_LEN_BYTE_ARRAY: Logical(kind=Kind.BYTES),
}

#: The older annotations know no local times: all their times are in UTC (LogicalTypes.md, "TIME").
_CONVERTED = {
    ConvertedType.UTF8: Logical(kind=Kind.TEXT),
    ConvertedType.ENUM: Logical(kind=Kind.TEXT),
    ConvertedType.JSON: Logical(kind=Kind.TEXT),
    ConvertedType.DATE: Logical(kind=Kind.DATE),
    ConvertedType.TIME_MILLIS: Logical(kind=Kind.TIME, unit=_MILLIS),
    ConvertedType.TIME_MICROS: Logical(kind=Kind.TIME, unit=_MICROS),
    ConvertedType.TIMESTAMP_MILLIS: Logical(kind=Kind.TIMESTAMP, unit=_MILLIS),
    ConvertedType.TIMESTAMP_MICROS: Logical(kind=Kind.TIMESTAMP, unit=_MICROS),
    ConvertedType.UINT_8: Logical(kind=Kind.INTEGER, bits=8, signed=False),
    ConvertedType.UINT_16: Logical(kind=Kind.INTEGER, bits=16, signed=False),
    ConvertedType.UINT_32: Logical(kind=Kind.INTEGER, bits=32, signed=False),
    ConvertedType.UINT_64: Logical(kind=Kind.INTEGER, bits=64, signed=False),
    ConvertedType.INT_8: Logical(kind=Kind.INTEGER, bits=8),
    ConvertedType.INT_16: Logical(kind=Kind.INTEGER, bits=16),
    ConvertedType.INT_32: Logical(kind=Kind.INTEGER, bits=32),
    ConvertedType.INT_64: Logical(kind=Kind.INTEGER, bits=64),
}

#: The physical types that may carry a kind.  LogicalTypes.md.
_CARRIERS = {
    Kind.TEXT: {Type.BYTE_ARRAY},
    Kind.INTEGER: {Type.INT32, Type.INT64},
    Kind.DECIMAL: {Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY},
    Kind.DATE: {Type.INT32},
    Kind.TIME: {Type.INT32, Type.INT64},
    Kind.TIMESTAMP: {Type.INT64},
    Kind.UUID: {Type.FIXED_LEN_BYTE_ARRAY},
    Kind.FLOAT16: {Type.FIXED_LEN_BYTE_ARRAY},
}
#: Logical types of FIXED_LEN_BYTE_ARRAY that have one width only, in bytes.
_WIDTHS = {Kind.UUID: 16, Kind.FLOAT16: 2}


def logical_type(element: SchemaElement) -> Logical:
    """Return the logical type of a leaf.

    If it declares none that is known here, its physical type decides. A declared type that the
    physical type cannot carry is ignored: the physical type says how the bytes are stored.
    """
    # Optional in the format, because a group has none; a leaf has one.
    physical = element.type or Type.BOOLEAN
    declared = element.logicalType
    found = None if declared is None else _from_logical(declared)
    # The newer annotation wins; the older one is beside it for readers that know no other.
    if found is None:
        found = _from_converted(element, converted_type_of(element))
    return found if found and _can_carry(element, found.kind) else _PHYSICAL[physical]


def _can_carry(element: SchemaElement, kind: Kind) -> bool:
    # Kinds without a width of their own take the column's, so that the comparison below holds.
    width = _WIDTHS.get(kind, element.type_length)
    # A UUID of 15 bytes is bytes: what it declares cannot be true.
    return element.type in _CARRIERS[kind] and element.type_length == width


def describe(element: SchemaElement) -> str:
    """Return the column's type for a person, such as ``BYTE_ARRAY text``."""
    physical = Type(element.type or Type.BOOLEAN).name
    logical = logical_type(element)
    return physical if logical == _PHYSICAL[Type[physical]] else f"{physical} {logical.kind}"


def _from_logical(declared: LogicalType) -> Logical | None:
    try:
        member = declared.member()
    except UnsupportedFeatureError:
        # A logical type of a later version of the format: filters hash physical values, which do
        # not depend on it.
        return None
    build = _LOGICAL.get(member)
    return build(getattr(declared, member)) if build else None


def _decimal(declared: DecimalType) -> Logical:
    return Logical(kind=Kind.DECIMAL, scale=declared.scale)


def _time(declared: TimeType) -> Logical:
    return Logical(kind=Kind.TIME, unit=_unit(declared.unit), is_utc=declared.isAdjustedToUTC)


def _timestamp(declared: TimestampType) -> Logical:
    return Logical(kind=Kind.TIMESTAMP, unit=_unit(declared.unit), is_utc=declared.isAdjustedToUTC)


def _unit(unit: TimeUnit) -> int:
    return {"MILLIS": _MILLIS, "MICROS": _MICROS, "NANOS": _NANOS}[unit.member()]


_LOGICAL: dict[str, Callable[[Any], Logical]] = {
    "STRING": lambda _: Logical(kind=Kind.TEXT),
    "ENUM": lambda _: Logical(kind=Kind.TEXT),
    "JSON": lambda _: Logical(kind=Kind.TEXT),
    "DECIMAL": _decimal,
    "DATE": lambda _: Logical(kind=Kind.DATE),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "INTEGER": lambda i: Logical(kind=Kind.INTEGER, bits=i.bitWidth, signed=i.isSigned),
    "UUID": lambda _: Logical(kind=Kind.UUID),
    "FLOAT16": lambda _: Logical(kind=Kind.FLOAT16),
}


def converted_type_of(element: SchemaElement) -> ConvertedType | None:
    """Return the older form of the logical type of a column, or None if it has none."""
    number = element.converted_type
    if number is None:
        return None
    return known_member(ConvertedType, number, "SchemaElement.converted_type")


def _from_converted(element: SchemaElement, converted: ConvertedType | None) -> Logical | None:
    if converted is ConvertedType.DECIMAL:
        return Logical(kind=Kind.DECIMAL, scale=element.scale or 0)
    return None if converted is None else _CONVERTED.get(converted)
