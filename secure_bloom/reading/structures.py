"""A predicate as a Python structure.

("email", "=", "a@x")                         a condition
("score", "is null")                          one without a value
[p, q, ...]                                   all of them
[[p, q], [r]]                                 any of the lists, as pyarrow and others have it
("and", p, q, ...), ("or", p, q, ...)         nested as deep as wanted
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from secure_bloom.errors import PolicyError
from secure_bloom.reading.predicates import (
    MAX_DEPTH,
    AllOf,
    AnyOf,
    Predicate,
    condition,
    operator_of,
)

_JOINS: dict[object, type[AllOf | AnyOf]] = {"and": AllOf, "or": AnyOf}
_HINT = 'write ("column", "=", value), ("and", ..., ...), ("or", ..., ...), or a list of them'


def from_structure(structure: object, *, depth: int = MAX_DEPTH) -> Predicate:
    """The predicate that a structure describes; PolicyError for what is none."""
    if depth == 0:
        raise PolicyError(f"the predicate nests deeper than {MAX_DEPTH} levels")
    if not isinstance(structure, list | tuple) or not structure:
        raise PolicyError("the predicate is not one", hint=_HINT)
    if isinstance(structure, list):
        return _list(structure, depth)
    if _is_condition(structure):
        column, operator, *value = structure
        return condition(column, operator, value[0] if value else None)
    join = _JOINS.get(structure[0]) if isinstance(structure[0], str) else None
    if join is None or len(structure) < 2:
        raise PolicyError("the predicate has a tuple that is no condition", hint=_HINT)
    return join(parts=_parts(structure[1:], depth))


def _is_condition(structure: tuple[Any, ...]) -> bool:
    return (
        len(structure) in (2, 3)
        and isinstance(structure[0], str)
        and isinstance(structure[1], str)
        and (structure[0] not in _JOINS or operator_of(structure[1]) is not None)
    )


def _list(structure: list[Any], depth: int) -> Predicate:
    join = AnyOf if all(isinstance(part, list) for part in structure) else AllOf
    parts = _parts(structure, depth)
    return parts[0] if len(parts) == 1 else join(parts=parts)


def _parts(structures: Sequence[object], depth: int) -> tuple[Predicate, ...]:
    return tuple(from_structure(part, depth=depth - 1) for part in structures)
