"""Parse a predicate from a Python structure.

("email", "=", "a@x")                       a condition
("score", "is null")                        a condition without a value
[p, q, ...]                                 all of them
[[p, q], [r]]                               any of the lists, as in pyarrow
("and", p, q, ...), ("or", p, q, ...)       nested to any depth
("not", p)                                  true where p is false
{"email": "a@x", "country": ["it", "no"]}   all of them: equal, or one of the list
("name", "like", "ab%")                     texts that begin with ab
(("a", "b"), "=", 1)                        a column by its path: member b of a, not column a.b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.tree import (
    MAX_DEPTH,
    PATTERNS,
    AllOf,
    AnyOf,
    Condition,
    Operator,
    Predicate,
    condition,
    dotted,
    negated,
    operator_of,
    refuse_never_true,
)

_JOINS: dict[object, type[AllOf[Condition] | AnyOf[Condition]]] = {"and": AllOf, "or": AnyOf}
#: First words of tuples that are no conditions.
_WORDS = {*_JOINS, "not"}
_WITHOUT_VALUE = (Operator.IS_NULL, Operator.IS_NOT_NULL)
_WITH_LIST = (Operator.IN, Operator.NOT_IN)
_MANY = (list, tuple, set, frozenset)
_HINT = 'write ("column", "=", value), ("and", ..., ...), ("or", ..., ...), or a list of them'


def from_structure(structure: object) -> Predicate:
    """Return the predicate that a structure describes. Raises PolicyError for an invalid one."""
    predicate = _predicate(structure, MAX_DEPTH)
    refuse_never_true(predicate)
    return predicate


def _predicate(structure: object, depth: int) -> Predicate:
    if depth == 0:
        raise PolicyError(f"the predicate nests deeper than {MAX_DEPTH} levels")
    if isinstance(structure, Mapping):
        return _pairs(structure)
    if not isinstance(structure, list | tuple):
        raise PolicyError(
            f"a condition is of type {type(structure).__name__}, wanted a tuple", hint=_HINT
        )
    if not structure:
        raise _empty()
    if isinstance(structure, list):
        return _list(structure, depth)
    if _is_condition(structure):
        return _condition(*structure)
    if structure[0] == "not":
        return _negation(structure[1:], depth)
    join = _JOINS.get(structure[0]) if isinstance(structure[0], str) else None
    if join is None:
        raise PolicyError(f"a tuple of {len(structure)} is no condition", hint=_HINT)
    if len(structure) == 1:
        raise PolicyError(f"{structure[0]!r} is followed by no condition", hint=_HINT)
    return join(parts=_parts(structure[1:], depth))


def _pairs(structure: Mapping[Any, object]) -> Predicate:
    """Return conditions that each column equals the value given for it, or one value of a list."""
    if not structure:
        raise _empty()
    for column, value in structure.items():
        if not _is_column(column) or isinstance(value, Mapping):
            raise PolicyError(
                "`where` as a mapping: each column name maps to a value or a list of values",
                hint='write {"email": "a@example.com", "customer.zip": ["00118", "20121"]}',
            )
    parts = tuple(
        condition(column, Operator.IN if _is_many(value) else Operator.EQUAL, value)
        for column, value in structure.items()
    )
    return parts[0] if len(parts) == 1 else AllOf(parts=parts)


def _is_many(value: object) -> bool:
    """Return whether a value is a list, a set, or an array of numpy, pyarrow, pandas or Polars."""
    is_one = isinstance(value, str | bytes | bytearray | memoryview) or hasattr(value, "as_py")
    return hasattr(value, "__iter__") and not is_one


def _empty() -> PolicyError:
    # It could mean all rows or none: whoever built the structure forgot to fill it.
    return PolicyError("the condition is empty", hint="leave `where` out to read all rows")


def _negation(parts: tuple[Any, ...], depth: int) -> Predicate:
    if len(parts) != 1:
        raise PolicyError("'not' takes one condition", hint='write ("not", ("column", "=", value))')
    return negated(_predicate(parts[0], depth - 1))


def _condition(column: str | tuple[str, ...], operator: str, *value: Any) -> Predicate:
    words = operator.lower().split()
    if value and words[-1:] in ([it] for it in PATTERNS) and words[:-1] in ([], ["not"]):
        matching = PATTERNS[words[-1]](column, value[0])
        return negated(matching) if len(words) > 1 else matching
    found = operator_of(operator)
    if found is not None and found not in _WITHOUT_VALUE:
        if not value:
            raise PolicyError(f"{found} needs a value", hint=_HINT, column=dotted(column))
        if found not in _WITH_LIST and isinstance(value[0], _MANY):
            raise PolicyError(
                f"{found} takes one value",
                hint='write ("column", "in", [...])',
                column=dotted(column),
            )
    return condition(column, operator, value[0] if value else None)


def _is_column(given: object) -> bool:
    """Return whether an item is the name of a column, or a path of names."""
    if isinstance(given, tuple):
        return bool(given) and all(isinstance(name, str) for name in given)
    return isinstance(given, str)


def _is_condition(structure: tuple[Any, ...]) -> bool:
    return (
        len(structure) in (2, 3)
        and _is_column(structure[0])
        and isinstance(structure[1], str)
        and (structure[0] not in _WORDS or operator_of(structure[1]) is not None)
    )


def _list(structure: list[Any], depth: int) -> Predicate:
    join = AnyOf if all(isinstance(part, list) for part in structure) else AllOf
    parts = _parts(structure, depth)
    return parts[0] if len(parts) == 1 else join(parts=parts)


def _parts(structures: Sequence[object], depth: int) -> tuple[Predicate, ...]:
    return tuple(_predicate(part, depth - 1) for part in structures)
