"""Stored values are ordered as the values that they stand for."""

from __future__ import annotations

import itertools
import struct

import pytest

from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ConvertedType, FieldRepetitionType, Type
from secure_bloom.parquet.value_order import byte_order_of, has_ordered_bounds, order_of
from testing.thrift import trees
from testing.thrift.metadata import ColumnOrder, SchemaElement
from testing.thrift.views import Empty, tree_of


def leaf(type_: Type, converted: ConvertedType | None = None, **fields: object) -> Leaf:
    if converted is not None:
        fields["converted_type"] = converted
    element = SchemaElement.of(name="x", type=type_, **fields)
    optional = FieldRepetitionType.OPTIONAL
    return Leaf(path=("x",), element=element, type=type_, repetitions=(optional,))


INT32, INT64, BYTES = Type.INT32, Type.INT64, Type.BYTE_ARRAY
#: Stored values in ascending order.
ASCENDING = {
    "int32": (leaf(INT32), [struct.pack("<i", n) for n in (-(2**31), -1, 0, 1, 256, 2**31 - 1)]),
    "uint32": (
        leaf(INT32, ConvertedType.UINT_32),
        [struct.pack("<I", n) for n in (0, 1, 256, 2**31, 2**32 - 1)],
    ),
    "int64": (leaf(INT64), [struct.pack("<q", n) for n in (-(2**63), -1, 0, 2**63 - 1)]),
    "text": (leaf(BYTES, ConvertedType.UTF8), [b"", b"a", b"a\x00", b"b", "é".encode()]),
    "bytes": (leaf(BYTES), [b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]),
    "double": (leaf(Type.DOUBLE), [struct.pack("<d", n) for n in (-1e300, -1.0, 0.5, 2.0)]),
    "decimal of bytes": (
        leaf(BYTES, ConvertedType.DECIMAL, precision=9, scale=2),
        [b"\x80", b"\xff", b"\x00", b"\x01", b"\x01\x00"],
    ),
}


@pytest.mark.parametrize("name", ASCENDING)
def test_values_ascend(name: str) -> None:
    column, stored = ASCENDING[name]
    order = order_of(column)
    assert order is not None
    assert all(order(one) < order(other) for one, other in itertools.pairwise(stored))


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "text", "bytes"])
def test_an_order_of_bytes_is_that_order(name: str) -> None:
    column, stored = ASCENDING[name]
    found = byte_order_of(column)
    assert found is not None

    def key(value: bytes) -> bytes:
        highest_first = value[::-1] if found.is_little else value
        flipped = highest_first[:1] and bytes([highest_first[0] ^ 0x80])
        return flipped + highest_first[1:] if found.is_signed else highest_first

    assert sorted(stored, key=key) == stored
    assert all(found.width in (0, len(value)) for value in stored)


def test_an_interval_has_no_order() -> None:
    column = leaf(Type.FIXED_LEN_BYTE_ARRAY, ConvertedType.INTERVAL, type_length=12)
    assert order_of(column) is None


MIDNIGHT = 2440588


@pytest.mark.parametrize(
    ("nanos", "day", "micros"),
    [
        (0, MIDNIGHT, 0),
        (1999, MIDNIGHT, 1),
        (86_400 * 10**9 - 1, MIDNIGHT - 1, -1),
        (0, 0, -MIDNIGHT * 86_400 * 10**6),
        # No time of a day, no Julian day, and more than 64 bits of microseconds.
        (86_400 * 10**9, MIDNIGHT, None),
        (-1, MIDNIGHT, None),
        (0, -1, None),
        (0, 2**31 - 1, None),
    ],
)
def test_an_int96_is_ordered_as_the_microsecond_that_readers_return(
    nanos: int, day: int, micros: int | None
) -> None:
    column = leaf(Type.INT96)
    order = order_of(column)
    assert order is not None
    assert order(struct.pack("<qi", nanos, day)) == micros
    assert order(bytes(11)) is None
    assert byte_order_of(column) is None


TYPE, IEEE, INT96 = (
    ColumnOrder.of(**{name: Empty()})
    for name in ("TYPE_ORDER", "IEEE_754_TOTAL_ORDER", "INT96_TIMESTAMP_ORDER")
)


@pytest.mark.parametrize(
    ("declared", "columns"),
    [
        (TYPE, {Type.DOUBLE, Type.FLOAT, Type.INT64, Type.BYTE_ARRAY}),
        (IEEE, {Type.DOUBLE, Type.FLOAT}),
        (INT96, {Type.INT96}),
        (ColumnOrder.of(), set()),
    ],
    ids=["TYPE_ORDER", "IEEE_754_TOTAL_ORDER", "INT96_TIMESTAMP_ORDER", "one of a later format"],
)
def test_bounds_are_in_a_known_order_where_the_footer_declares_one_for_the_type(
    declared: ColumnOrder, columns: set[Type]
) -> None:
    every = (Type.DOUBLE, Type.FLOAT, Type.INT64, Type.BYTE_ARRAY, Type.INT96)
    assert {it for it in every if has_ordered_bounds([declared], 0, leaf(it))} == columns
    assert not any(has_ordered_bounds([declared], 1, leaf(it)) for it in every)
    assert not any(has_ordered_bounds(None, 0, leaf(it)) for it in every)


def test_a_value_of_another_width_is_none() -> None:
    order = order_of(leaf(INT32))
    assert order is not None
    assert order(b"\x01") is None


def test_a_type_of_a_later_format_has_no_order() -> None:
    later = leaf(BYTES)
    tree_of(later.element).fields[10] = (12, trees.Struct({99: (12, trees.Struct())}))
    assert order_of(later) is None
