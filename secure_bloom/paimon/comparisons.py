"""What Paimon asks of a file index: comparisons of columns, joined by AND and OR.

Unlike what a person asks for in :mod:`secure_bloom.predicates.tree`, a comparison may be
with NULL, and with the start of a text.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from secure_bloom.errors import PolicyError
from secure_bloom.predicates import tree as reading
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure


class Operator(enum.StrEnum):
    """How a column is compared."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"
    STARTS_WITH = "starts with"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One column against values: none for the two IS, any number for IN, else one."""

    column: str
    operator: Operator
    values: tuple[object, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class And:
    """All of the parts."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of the parts."""

    parts: tuple[Predicate, ...]


Predicate: TypeAlias = Comparison | And | Or


def comparisons(predicate: Predicate) -> Iterator[Comparison]:
    """Every comparison in a predicate."""
    if isinstance(predicate, Comparison):
        yield predicate
        return
    for part in predicate.parts:
        yield from comparisons(part)


def as_predicate(where: object) -> Predicate:
    """The predicate that a person means: a text, or a structure of tuples and lists.

    PolicyError, without values, for what is none.
    """
    if isinstance(where, Comparison | And | Or):
        require_predicate(where)
        return where
    if isinstance(where, str) and not where.strip():
        hint = "write one such as: id = 5 and name in ('anna', 'bo')"
        raise PolicyError("the condition is empty", hint=hint)
    return _translated(from_text(where) if isinstance(where, str) else from_structure(where))


def require_predicate(predicate: object) -> None:
    """Raise PolicyError for what is no predicate, or one of more than 100 levels."""
    level = [predicate]
    for _ in range(reading.MAX_DEPTH):
        joins = [part for part in level if isinstance(part, And | Or)]
        known = all(isinstance(part, Comparison | And | Or) for part in level)
        if not known or not all(isinstance(join.parts, tuple | list) for join in joins):
            raise PolicyError("the predicate has a part that is none")
        level = [part for join in joins for part in join.parts]
        if not level:
            return
    raise PolicyError(f"the predicate nests deeper than {reading.MAX_DEPTH} levels")


#: A comparison's opposite needs a value as it does, and no index here says more about it.
_OPPOSITES = {
    reading.Operator.NOT_LESS: Operator.LESS,
    reading.Operator.NOT_LESS_OR_EQUAL: Operator.LESS_OR_EQUAL,
    reading.Operator.NOT_GREATER: Operator.GREATER,
    reading.Operator.NOT_GREATER_OR_EQUAL: Operator.GREATER_OR_EQUAL,
}


def _translated(predicate: reading.Predicate) -> Predicate:
    if isinstance(predicate, reading.Condition):
        operator = _OPPOSITES.get(predicate.operator) or Operator(predicate.operator)
        return Comparison(column=predicate.column, operator=operator, values=predicate.values)
    join = And if isinstance(predicate, reading.AllOf) else Or
    return join(tuple(map(_translated, predicate.parts)))
