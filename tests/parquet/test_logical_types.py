"""What a column's values are to a person, by either way in which files declare it."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom.parquet.logical_types import Kind, Logical, describe, logical_type
from secure_bloom.parquet.structures.metadata import ConvertedType, Type
from testing.thrift.metadata import DecimalType, IntType, LogicalType, SchemaElement


def element(type_: Type, **fields: Any) -> SchemaElement:
    return SchemaElement.of(name="x", type=type_, **fields)


def test_both_declarations_say_the_same() -> None:
    newer = LogicalType.of(DECIMAL=DecimalType.of(scale=2, precision=9))
    older = {"converted_type": ConvertedType.DECIMAL, "scale": 2, "precision": 9}
    assert logical_type(element(Type.INT32, logicalType=newer)) == logical_type(
        element(Type.INT32, **older)
    )


def test_the_newer_declaration_goes_before_the_older() -> None:
    signed = LogicalType.of(INTEGER=IntType.of(bitWidth=8, isSigned=True))
    both = element(Type.INT32, logicalType=signed, converted_type=ConvertedType.UINT_8)
    assert logical_type(both) == Logical(kind=Kind.INTEGER, bits=8, signed=True)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (element(Type.BYTE_ARRAY, converted_type=ConvertedType.UTF8), Kind.TEXT),
        (element(Type.BYTE_ARRAY), Kind.BYTES),
        (element(Type.INT96), Kind.INT96),
        (element(Type.INT32, converted_type=ConvertedType.DATE), Kind.DATE),
    ],
)
def test_a_schema_element_has_the_kind_that_it_declares(
    declared: SchemaElement, kind: Kind
) -> None:
    assert logical_type(declared).kind is kind


def test_what_the_physical_type_cannot_carry_is_not_believed() -> None:
    """The bytes say what is stored."""
    text_of_numbers = element(Type.INT64, converted_type=ConvertedType.UTF8)
    assert logical_type(text_of_numbers).kind is Kind.INTEGER


def test_a_type_is_described_in_a_word_or_two() -> None:
    assert describe(element(Type.BYTE_ARRAY, converted_type=ConvertedType.UTF8)) == (
        "BYTE_ARRAY text"
    )
    assert describe(element(Type.INT64)) == "INT64"
