"""Stored values are ordered as the values that they stand for."""

from __future__ import annotations

import itertools
import struct

import pytest

from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    FieldRepetitionType,
    SchemaElement,
    Type,
)
from secure_bloom.parquet.value_order import byte_order_of, order_of


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


@pytest.mark.parametrize(
    "column",
    [
        leaf(Type.INT96),
        leaf(Type.FIXED_LEN_BYTE_ARRAY, ConvertedType.INTERVAL, type_length=12),
    ],
    ids=["INT96", "INTERVAL"],
)
def test_some_types_have_no_order(column: Leaf) -> None:
    assert order_of(column) is None
    assert byte_order_of(column) is None


def test_a_value_of_another_width_is_none() -> None:
    order = order_of(leaf(INT32))
    assert order is not None
    assert order(b"\x01") is None


def test_a_type_of_a_later_format_has_no_order() -> None:
    later = leaf(BYTES)
    later.element.tree.fields[10] = (12, trees.Struct({99: (12, trees.Struct())}))
    assert order_of(later) is None
