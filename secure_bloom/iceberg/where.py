"""Turn a condition into pyiceberg's filter for the files that may hold matching rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNull,
    Or,
)
from pyiceberg.schema import Schema

from secure_bloom.predicates.binding import BoundCondition, BoundPredicate, bind
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import AllOf, AnyOf, Operator

_Build = Callable[[str, list[Any]], BooleanExpression]

#: Operators that metrics of files can decide.  A negated comparison of floats is left out: it is
#: true for a NaN, which bounds do not show.
_EXPRESSIONS: Final[dict[Operator, _Build]] = {
    Operator.EQUAL: lambda name, values: EqualTo(name, values[0]),
    Operator.NOT_EQUAL: lambda name, values: NotEqualTo(name, values[0]),
    Operator.LESS: lambda name, values: LessThan(name, values[0]),
    Operator.LESS_OR_EQUAL: lambda name, values: LessThanOrEqual(name, values[0]),
    Operator.GREATER: lambda name, values: GreaterThan(name, values[0]),
    Operator.GREATER_OR_EQUAL: lambda name, values: GreaterThanOrEqual(name, values[0]),
    Operator.IN: lambda name, values: In(name, values),
    Operator.NOT_IN: lambda name, values: NotIn(name, values),
    Operator.IS_NULL: lambda name, _: IsNull(name),
    Operator.IS_NOT_NULL: lambda name, _: NotNull(name),
}


def row_filter(where: str, schema: Schema) -> BooleanExpression:
    """Return an expression that is true for every file that has a matching row.

    Raises PolicyError for a column that the table lacks, or a value that a column cannot hold.
    """
    return _translated(bind(from_text(where), schema.as_arrow().remove_metadata()))


def _translated(tree: BoundPredicate) -> BooleanExpression:
    if not isinstance(tree, AllOf | AnyOf):
        return _condition(tree)
    found, *rest = map(_translated, tree.parts)
    for part in rest:
        found = And(found, part) if isinstance(tree, AllOf) else Or(found, part)
    return found


def _condition(condition: BoundCondition) -> BooleanExpression:
    values = [_literal(value) for value in condition.values]
    build = _EXPRESSIONS.get(condition.operator)
    # What pyiceberg cannot compare chooses all files: a filter too many is no wrong answer.
    if build is None or condition.of_elements or any(value is None for value in values):
        return AlwaysTrue()
    return build(".".join(condition.path), values)


def _literal(value: pa.Scalar) -> Any:
    """Return a value as pyiceberg takes it, or None for a type that it does not compare."""
    if pa.types.is_timestamp(value.type) and value.type.unit == "ns":
        return None
    found = value.as_py()
    if isinstance(found, dt.date | dt.time):
        return found.isoformat()
    return found if isinstance(found, bool | int | float | str | bytes) else str(found)
