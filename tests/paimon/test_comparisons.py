"""Predicates of Paimon: from a text or from tuples, of bounded depth."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.paimon.index_readers import (
    And,
    Comparison,
    Operator,
    Or,
    as_predicate,
    require_predicate,
)


def test_a_text_and_tuples_give_one_predicate() -> None:
    assert as_predicate("id = 5") == as_predicate([("id", "=", "5")])


def test_conditions_are_joined() -> None:
    found = as_predicate("a = 1 AND (b = 2 OR c IS NULL)")
    assert isinstance(found, And)
    assert isinstance(found.parts[1], Or)
    last = found.parts[1].parts[1]
    assert isinstance(last, Comparison)
    assert (last.column, last.operator, last.values) == ("c", Operator.IS_NULL, ())


def test_more_than_a_hundred_levels_are_refused() -> None:
    deep: object = Comparison(column="a", operator=Operator.EQUAL, values=(1,))
    for _ in range(101):
        deep = And(parts=(deep,))
    with pytest.raises(PolicyError, match="100"):
        require_predicate(deep)


def test_a_value_is_in_no_repr() -> None:
    secret = Comparison(column="a", operator=Operator.EQUAL, values=("swordfish",))
    assert "swordfish" not in repr(secret)
