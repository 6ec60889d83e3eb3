"""What rows are asked for: a tree of conditions on columns, joined by AND and OR.

There is no NOT in the tree: each operator has its opposite, so a negation goes down to the
conditions.  With nulls that is the same: a comparison with null is neither true nor false, and
rows for which the whole is not true are left out.  The opposite of ``<`` is not ``>=``, because a
NaN is neither less than a number nor at least that number.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from secure_bloom.errors import PolicyError


class Operator(enum.StrEnum):
    """How a column is held against values."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    NOT_LESS = "not <"
    NOT_LESS_OR_EQUAL = "not <="
    NOT_GREATER = "not >"
    NOT_GREATER_OR_EQUAL = "not >="


_OPPOSITES = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.LESS: Operator.NOT_LESS,
    Operator.LESS_OR_EQUAL: Operator.NOT_LESS_OR_EQUAL,
    Operator.GREATER: Operator.NOT_GREATER,
    Operator.GREATER_OR_EQUAL: Operator.NOT_GREATER_OR_EQUAL,
    Operator.IN: Operator.NOT_IN,
    Operator.IS_NULL: Operator.IS_NOT_NULL,
}
_OPPOSITES |= {after: before for before, after in _OPPOSITES.items()}
#: Other spellings, as Python and SQL have them.
_SPELLINGS = {"==": Operator.EQUAL, "<>": Operator.NOT_EQUAL}
_NULL_TESTS = {Operator.IS_NULL, Operator.IS_NOT_NULL}
_LISTS = {Operator.IN, Operator.NOT_IN}
#: Deeper than any question a person asks; a tree is walked by recursion.
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One column against values: one of them for a comparison, any number for a list.

    Values are as the caller gave them; what they are in the column's type is settled when the
    schema is known.  They never show in texts.  With ``is_cast`` they are an array of pyarrow's
    that it casts to the column's type where it can, even if that rounds.
    """

    column: str
    operator: Operator
    values: tuple[object, ...] = field(default=(), repr=False)
    is_cast: bool = False

    def __post_init__(self) -> None:
        # A null of pyarrow is an object that says it is not valid.
        nulls = (value is None or not getattr(value, "is_valid", True) for value in self.values)
        if self.operator not in _NULL_TESTS and any(nulls):
            raise PolicyError(
                f"{self.operator} with null is never true",
                hint="ask for `is null` or `is not null`",
                column=self.column,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf:
    """Every part must be true."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """One part must be true."""

    parts: tuple[Predicate, ...]


Predicate = Condition | AllOf | AnyOf


def condition(column: str, operator: str, value: object) -> Condition:
    """A condition as people write it; ``value`` is a collection for ``in`` and ``not in``."""
    found = operator_of(operator)
    if found is None:
        raise PolicyError(
            f"{operator!r} is not an operator",
            hint="operators are " + ", ".join(Operator),
            column=column,
        )
    if found in _NULL_TESTS:
        if value is not None:
            raise PolicyError(f"{found} takes no value", column=column)
        return Condition(column=column, operator=found)
    if found not in _LISTS:
        return Condition(column=column, operator=found, values=(value,))
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise PolicyError(f"{found} takes a list of values", column=column)
    return Condition(column=column, operator=found, values=tuple(value))


def operator_of(text: str) -> Operator | None:
    """The operator of that spelling, in any case and with any spaces; None for none."""
    lowered = " ".join(text.lower().split())
    return _SPELLINGS.get(lowered) or next((o for o in Operator if o == lowered), None)


def negated(predicate: Predicate) -> Predicate:
    """The predicate that is true where the given one is false; neither is where that is null."""
    if isinstance(predicate, Condition):
        return replace(predicate, operator=_OPPOSITES[predicate.operator])
    parts = tuple(negated(part) for part in predicate.parts)
    return AnyOf(parts=parts) if isinstance(predicate, AllOf) else AllOf(parts=parts)


def conditions(predicate: Predicate) -> Iterator[Condition]:
    """All conditions of the tree, from left to right."""
    if isinstance(predicate, Condition):
        yield predicate
        return
    for part in predicate.parts:
        yield from conditions(part)
