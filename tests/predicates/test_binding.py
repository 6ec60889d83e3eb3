"""A predicate gets the columns, types and values of a schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.binding import bind, bound_conditions
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from testing.growth import growth

SCHEMA = pa.schema(
    [("id", pa.int32()), ("s", pa.struct([("a", pa.string())])), ("at", pa.timestamp("us", "UTC"))]
)


def test_conditions_are_numbered_in_their_order() -> None:
    found = bound_conditions(bind(from_text("id = 1 AND (s.a = 'x' OR id > 2)"), SCHEMA))
    assert [condition.ordinal for condition in found] == [0, 1, 2]
    assert [condition.path for condition in found] == [("id",), ("s", "a"), ("id",)]


def test_values_have_the_type_of_the_column() -> None:
    (condition,) = bound_conditions(bind(from_text("id = 7"), SCHEMA))
    assert condition.values == (pa.scalar(7, pa.int32()),)


def test_no_predicate_has_no_conditions() -> None:
    assert bound_conditions(None) == []


def test_an_unknown_column_is_named_without_the_value() -> None:
    with pytest.raises(PolicyError, match="nobody") as caught:
        bind(from_text("nobody = 'swordfish'"), SCHEMA)
    assert "swordfish" not in str(caught.value)


def test_a_column_whose_name_is_not_utf8_is_unknown() -> None:
    with pytest.raises(PolicyError, match="column"):
        bind(from_text("\udcff = 'x'"), SCHEMA)


def test_a_value_of_another_type_is_refused_without_being_shown() -> None:
    with pytest.raises(PolicyError) as caught:
        bind(from_text("id = 'swordfish'"), SCHEMA)
    assert "swordfish" not in str(caught.value)


def test_lists_of_extension_types_can_be_tested_for_null() -> None:
    schema = pa.schema([("ids", pa.list_(pa.uuid()))])
    (condition,) = bound_conditions(bind(from_text("ids is null"), schema))
    assert condition.type == pa.list_(pa.uuid())


def test_flags_of_numpy_are_flags() -> None:
    schema = pa.schema([("flag", pa.bool_())])
    (condition,) = bound_conditions(bind(from_structure(("flag", "=", np.True_)), schema))
    assert condition.values == (pa.scalar(True),)


@pytest.mark.parametrize("in_structure", [False, True])
def test_conditions_on_many_columns_take_time_by_their_number(in_structure: bool) -> None:
    def bind_all(count: int) -> None:
        fields = [(f"c{number}", pa.int64()) for number in range(count)]
        schema = pa.schema([("s", pa.struct(fields))] if in_structure else fields)
        before = "s." if in_structure else ""
        bind(from_structure([(f"{before}c{n}", "<", n) for n in range(count)]), schema)

    assert growth(bind_all, 50) < 6
