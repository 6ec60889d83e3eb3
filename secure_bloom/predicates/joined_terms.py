"""Join comparisons of one column in one OR or AND into a list: `a = 1 or a = 2` is `a in (1, 2)`.

Row groups are checked against each condition separately.  Programs write thousands of conditions,
which would take thousands of times longer than one list with as many values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, Operator, Predicate

_Joined: TypeAlias = AllOf[Condition] | AnyOf[Condition]

#: The operators that are joined in an OR, and in an AND: of comparisons with one value, and of
#: lists.  The second one is the operator of the result.
_IN_OR = frozenset({Operator.EQUAL, Operator.IN})
_IN_AND = frozenset({Operator.NOT_EQUAL, Operator.NOT_IN})


def joined(predicate: Predicate) -> Predicate:
    """Return an equal predicate, in which these comparisons are one condition."""
    if isinstance(predicate, Condition):
        return predicate
    kind = type(predicate)
    parts = list(_join(_flat(kind, predicate), kind))
    return parts[0] if len(parts) == 1 else kind(parts=tuple(parts))


def _flat(kind: type[_Joined], predicate: _Joined) -> Iterator[Predicate]:
    """Yield the parts. A part of the same kind is replaced by its own parts."""
    for part in map(joined, predicate.parts):
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _join(parts: Iterable[Predicate], kind: type[_Joined]) -> Iterator[Predicate]:
    """Yield the parts in their order, with a list in the place of its first condition."""
    alike: dict[object, list[Condition]] = {}
    for place, part in enumerate(parts):
        operators = _IN_OR if kind is AnyOf else _IN_AND
        if isinstance(part, Condition) and part.operator in operators and not part.is_cast:
            alike.setdefault((part.column, part.path), []).append(part)
        else:
            alike[place] = [part]  # type: ignore[list-item]
    for same in alike.values():
        yield same[0] if len(same) == 1 else _list_of(same, kind)


def _list_of(conditions: list[Condition], kind: type[_Joined]) -> Condition:
    first = conditions[0]
    return Condition(
        column=first.column,
        operator=Operator.IN if kind is AnyOf else Operator.NOT_IN,
        values=tuple(value for condition in conditions for value in condition.values),
        path=first.path,
        has_null=any(condition.has_null for condition in conditions),
    )
