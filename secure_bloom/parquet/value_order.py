"""The order of stored values of a column, if it is known.

The order is defined by the logical type (LogicalTypes.md, "Sort order"): numbers by size, texts and
bytes byte by byte, unsigned.  A type that is not known here has no order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from secure_bloom.parquet.logical_types import JULIAN_EPOCH, Kind, Logical
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    ColumnOrder,
    Type,
)

#: A stored value as something that Python orders as the format does; None for what it is not.
OrderKey = Callable[[bytes], Any]


def order_of(leaf: Leaf) -> OrderKey | None:
    """Return the order of stored values of ``leaf``, or None if no order is known."""
    logical = leaf.logical
    if leaf.is_repeated or leaf.is_unordered:
        return None
    return _ORDERS[logical.kind](leaf, logical)


def has_ordered_bounds(orders: Sequence[ColumnOrder] | None, ordinal: int, leaf: Leaf) -> bool:
    """Return whether a column's min_value and max_value are in the order of :func:`order_of`.

    ``orders`` are the footer's ``column_orders``.  IEEE_754_TOTAL_ORDER puts -0 before +0, but
    :func:`order_of` takes both as one number.  In that order a bound is NaN only if no value is a
    number, and a NaN bound is not used here.
    """
    if orders is None or ordinal >= len(orders):
        return False
    declared, kind = orders[ordinal], leaf.logical.kind
    if declared.TYPE_ORDER is not None:
        # Writers never agreed on what TYPE_ORDER means for INT96 (parquet.thrift, ColumnOrder).
        return kind is not Kind.INT96
    if declared.IEEE_754_TOTAL_ORDER is not None:
        return kind in (Kind.FLOAT, Kind.FLOAT16)
    return declared.INT96_TIMESTAMP_ORDER is not None and kind is Kind.INT96


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteOrder:
    """Compares the PLAIN encodings of a column's values byte by byte.

    Values have ``width`` bytes, or any length if ``width`` is 0, where a prefix sorts first. With
    ``is_little`` the most significant byte is last. With ``is_signed`` its highest bit is a sign.
    """

    width: int = 0
    is_little: bool = False
    is_signed: bool = False


def byte_order_of(leaf: Leaf) -> ByteOrder | None:
    """Return the order of :func:`order_of` if comparing bytes gives it, else None."""
    logical = leaf.logical
    if order_of(leaf) is None or logical.kind is Kind.INT96:
        return None
    if logical.kind in _BYTEWISE:
        return ByteOrder()
    # Decimals of fixed bytes are big-endian, all numbers else little-endian (LogicalTypes.md,
    # "DECIMAL").  Floats are not compared by bytes: they have NaN and two zeros.
    is_number = leaf.type in (Type.INT32, Type.INT64)
    if leaf.width is None or not (is_number or logical.kind is Kind.DECIMAL):
        return None
    is_signed = logical.signed or logical.kind is Kind.DECIMAL
    return ByteOrder(width=leaf.width, is_little=is_number, is_signed=is_signed)


def _numbers(form: str) -> OrderKey:
    layout = struct.Struct(form)
    return lambda stored: layout.unpack(stored)[0] if len(stored) == layout.size else None


_BYTEWISE = {Kind.TEXT, Kind.BYTES, Kind.UUID}
_SIGNED = {4: _numbers("<i"), 8: _numbers("<q")}
_UNSIGNED = {4: _numbers("<I"), 8: _numbers("<Q")}
_FLOATS = {2: _numbers("<e"), 4: _numbers("<f"), 8: _numbers("<d")}


def _bytewise(_leaf: Leaf, _logical: Logical) -> OrderKey:
    return bytes


def _integers(leaf: Leaf, logical: Logical) -> OrderKey:
    return (_SIGNED if logical.signed else _UNSIGNED)[leaf.width or 0]


def _decimals(leaf: Leaf, _logical: Logical) -> OrderKey:
    if leaf.type in (Type.INT32, Type.INT64):
        return _SIGNED[leaf.width or 0]
    if leaf.width is not None:
        return lambda stored: _signed_number(stored) if len(stored) == leaf.width else None
    # No bytes are no number.
    return lambda stored: _signed_number(stored) if stored else None


def _signed_number(stored: bytes) -> int:
    return int.from_bytes(stored, "big", signed=True)


def _floats(leaf: Leaf, _logical: Logical) -> OrderKey:
    return _FLOATS[leaf.width or 0]


def _booleans(_leaf: Leaf, _logical: Logical) -> OrderKey:
    # False before true, each as a byte in statistics (parquet.thrift, ColumnOrder).
    return _numbers("<B")


#: Nanoseconds of the day, then the Julian day.
_INT96 = struct.Struct("<Qi")
_MICROS_A_DAY = 86_400_000_000
_MAX_MICROS = 2**63 - 1


def int96_micros(stored: bytes) -> int | None:
    """Return an INT96 as microseconds since 1970, rounded down as readers do.

    Return None if it is no timestamp: readers do not agree on a day before the Julian day 0, on a
    time beyond its day, and on instants that 64 bits cannot hold.
    """
    if len(stored) != _INT96.size:
        return None
    nanos, day = _INT96.unpack(stored)
    micros = (day - JULIAN_EPOCH) * _MICROS_A_DAY + nanos // 1000
    is_timestamp = day >= 0 and nanos < 1000 * _MICROS_A_DAY and micros <= _MAX_MICROS
    return micros if is_timestamp else None


_ORDERS: dict[Kind, Callable[[Leaf, Logical], OrderKey | None]] = {
    Kind.TEXT: _bytewise,
    Kind.BYTES: _bytewise,
    Kind.UUID: _bytewise,
    Kind.INTEGER: _integers,
    Kind.DATE: _integers,
    Kind.TIME: _integers,
    Kind.TIMESTAMP: _integers,
    Kind.DECIMAL: _decimals,
    Kind.FLOAT: _floats,
    Kind.FLOAT16: _floats,
    Kind.BOOLEAN: _booleans,
    Kind.INT96: lambda _leaf, _logical: int96_micros,
}
