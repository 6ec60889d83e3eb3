"""Paimon's predicates for a file index: comparisons of columns, joined by AND and OR.

The tree is that of :mod:`secure_bloom.predicates.tree`.  The comparisons differ: Paimon compares
with NULL and with the start of a text, and cannot negate ``<``.  :func:`as_predicate` translates.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TypeAlias

from secure_bloom.calling.arguments import member_of
from secure_bloom.errors import PolicyError
from secure_bloom.predicates import tree
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure


class PaimonOperator(enum.StrEnum):
    """The comparisons of a column. :data:`Operator` is the public name."""

    EQUAL = tree.Operator.EQUAL
    NOT_EQUAL = tree.Operator.NOT_EQUAL
    LESS = tree.Operator.LESS
    LESS_OR_EQUAL = tree.Operator.LESS_OR_EQUAL
    GREATER = tree.Operator.GREATER
    GREATER_OR_EQUAL = tree.Operator.GREATER_OR_EQUAL
    IN = tree.Operator.IN
    NOT_IN = tree.Operator.NOT_IN
    STARTS_WITH = "starts with"
    IS_NULL = tree.Operator.IS_NULL
    IS_NOT_NULL = tree.Operator.IS_NOT_NULL


Operator = PaimonOperator
#: The comparisons that are true for the values they name, and for all other values.
FOR_VALUES = frozenset({Operator.EQUAL, Operator.IN})
FOR_OTHER_VALUES = frozenset({Operator.NOT_EQUAL, Operator.NOT_IN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One column compared with values: none for IS, any number for IN, one for others."""

    column: str
    operator: Operator
    values: tuple[object, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "operator", member_of(Operator, "operator", self.operator))


#: Joins are those of every predicate; these are their public names here.
And, Or = tree.AllOf, tree.AnyOf
Predicate: TypeAlias = tree.Tree[Comparison]


def as_predicate(where: object) -> Predicate:
    """Return the predicate in a text, or in a structure of tuples and lists.

    Raises PolicyError, without values, for anything else.
    """
    if isinstance(where, Comparison | And | Or):
        require_predicate(where)
        return where
    if isinstance(where, str) and not where.strip():
        hint = "write one such as: id = 5 and name in ('anna', 'bo')"
        raise PolicyError("the condition is empty", hint=hint)
    found = from_text(where) if isinstance(where, str) else from_structure(where)
    return tree.mapped(found, _translated)


def require_predicate(predicate: object) -> None:
    """Raise PolicyError unless ``predicate`` is a predicate of at most 100 levels."""
    # Level by level and not by recursion: a predicate that is too deep must not end in Python's own
    # error.
    level = [predicate]
    for _ in range(tree.MAX_DEPTH):
        joins = [part for part in level if isinstance(part, And | Or)]
        known = all(isinstance(part, Comparison | And | Or) for part in level)
        if not known or not all(isinstance(join.parts, tuple | list) for join in joins):
            raise PolicyError("the predicate has a part that is not a predicate")
        level = [part for join in joins for part in join.parts]
        if not level:
            return
    raise PolicyError(f"the predicate nests deeper than {tree.MAX_DEPTH} levels")


#: ``not <`` needs a value as ``<`` does, and no index here knows more about either.
_OPPOSITES = {
    tree.Operator.NOT_LESS: Operator.LESS,
    tree.Operator.NOT_LESS_OR_EQUAL: Operator.LESS_OR_EQUAL,
    tree.Operator.NOT_GREATER: Operator.GREATER,
    tree.Operator.NOT_GREATER_OR_EQUAL: Operator.GREATER_OR_EQUAL,
}


def _translated(condition: tree.Condition) -> Comparison:
    if any(isinstance(value, tree.Beginning) for value in condition.values):
        raise PolicyError(
            "Paimon's indexes are not asked for beginnings of texts", column=condition.column
        )
    operator = _OPPOSITES.get(condition.operator) or Operator(condition.operator)
    return Comparison(column=condition.column, operator=operator, values=condition.values)
