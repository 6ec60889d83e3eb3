"""Conditions as people write them, and trees of them."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.tree import (
    AllOf,
    AnyOf,
    Operator,
    Predicate,
    condition,
    is_true,
    leaves,
    mapped,
    negated,
    operator_of,
)

LEAVES = st.integers(0, 9).map(lambda n: condition(f"c{n}", "=", n))
TREES: st.SearchStrategy[Predicate] = st.recursive(
    LEAVES,
    lambda parts: st.builds(
        lambda join, found: join(parts=tuple(found)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "operator"),
    [("==", Operator.EQUAL), (" NOT   in ", Operator.NOT_IN), ("IS NULL", Operator.IS_NULL)],
)
def test_operators_are_read_in_any_spelling(text: str, operator: Operator) -> None:
    assert operator_of(text) is operator


def test_what_is_no_operator_is_told_the_operators() -> None:
    assert operator_of("like") is None
    with pytest.raises(PolicyError, match="'like' is not an operator") as caught:
        condition("a", "like", "x%")
    assert "<=" in str(caught.value.hint)


@pytest.mark.parametrize("value", [None, "=", "is null"])
def test_a_value_in_the_place_of_the_operator_is_not_shown(value: str | None) -> None:
    with pytest.raises(PolicyError, match="there is no operator after the name") as caught:
        condition("email", "secret@example.com", value)
    assert "secret" not in str(caught.value) + str(caught.value.hint)


@pytest.mark.parametrize(
    ("operator", "value", "complaint"),
    [
        ("=", None, "with null is never true"),
        ("in", "text", "takes a list"),
        ("in", 5, "takes a list"),
        ("is null", 5, "takes no value"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused(
    operator: str, value: object, complaint: str
) -> None:
    with pytest.raises(PolicyError, match=complaint):
        condition("a", operator, value)


def test_in_goes_without_its_nulls() -> None:
    found = condition("a", "in", [1, None, 2])
    assert (found.values, found.has_null) == ((1, 2), True)


def test_values_never_show_and_travel_between_processes() -> None:
    made = condition(("a", "b.c"), "=", pa.scalar(5, pa.timestamp("ns")))
    assert "5" not in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made


@given(TREES, st.sets(st.integers(0, 9)))
def test_a_negation_is_true_where_the_tree_is_false(tree: Predicate, true: set[int]) -> None:
    def holds(one: object) -> bool:
        assert hasattr(one, "operator")
        is_equal = one.values[0] in true  # type: ignore[attr-defined]
        return is_equal is (one.operator is Operator.EQUAL)

    assert is_true(negated(tree), holds) is not is_true(tree, holds)
    assert negated(negated(tree)) == tree


@given(TREES)
def test_a_tree_that_is_mapped_keeps_its_shape(tree: Predicate) -> None:
    numbers = iter(range(100))
    numbered = mapped(tree, lambda _: next(numbers))
    assert list(leaves(numbered)) == list(range(len(list(leaves(tree)))))
    assert mapped(tree, lambda one: one) == tree
