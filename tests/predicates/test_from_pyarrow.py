"""Expressions of pyarrow say what tuples and texts say."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.binding import bind, bound_conditions
from secure_bloom.predicates.from_pyarrow import from_expression
from secure_bloom.predicates.from_tuples import from_structure

A, B, T = pc.field("a"), pc.field("b"), pc.field("t")
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("t", pa.string())])


@pytest.mark.parametrize(
    ("expression", "tuples"),
    [
        (A == 1, [("a", "=", 1)]),
        (A >= 1, [("a", ">=", 1)]),
        ((A == 1) & (B < 2), [("a", "=", 1), ("b", "<", 2)]),
        ((A == 1) | (B < 2), [[("a", "=", 1)], [("b", "<", 2)]]),
        (A.is_null(), [("a", "is null")]),
        (pc.starts_with(T, pattern="x") | (A == 1), ("or", ("t", "like", "x%"), ("a", "=", 1))),
    ],
)
def test_an_expression_is_the_predicate_of_its_tuples(
    expression: pc.Expression, tuples: object
) -> None:
    ours, theirs = from_expression(expression), from_structure(tuples)
    assert type(ours) is type(theirs)
    said = [
        [
            (".".join(each.path), each.operator, each.values)
            for each in bound_conditions(bind(it, SCHEMA))
        ]
        for it in (ours, theirs)
    ]
    assert said[0] == said[1] != []


def test_what_is_no_condition_of_a_column_is_refused() -> None:
    for expression in (
        A + 1 == 2,
        pc.abs(A) == 3,
        A,
        pc.starts_with(T, pattern="x", ignore_case=True),
    ):
        with pytest.raises(PolicyError):
            from_expression(expression)
