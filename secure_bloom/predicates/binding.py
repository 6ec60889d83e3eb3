"""Bind a predicate to a table's schema: each condition gets its column, type and values.

Every value becomes a scalar of the column's type, without rounding.  If the type cannot hold the
value, the condition is rewritten to the next lower value, with the same meaning:

    a < 2.5     on integers    a <= 2
    a = 2.5     on integers    a in ()
    a < 0.7     on FLOATs      a <= 0.69999998807907104, the greatest FLOAT below 0.7

Row groups are pruned, and rows are compared, with these same scalars.

Comparisons of one column in one OR or AND are joined into a list: `a = 1 or a = 2` is
`a in (1, 2)`.  Row groups are checked against each condition separately.  Programs write thousands
of conditions, which would take thousands of times longer than one list with as many values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.members import ELEMENT, members_of, names_beside
from secure_bloom.parquet.schema import short_name, unknown_column
from secure_bloom.parquet.texts import TICKS
from secure_bloom.predicates.coercion import Coerced, coerced_values
from secure_bloom.predicates.exact_values import exact_scalars
from secure_bloom.predicates.tree import (
    MAX_DEPTH,
    AllOf,
    AnyOf,
    Beginning,
    Condition,
    Operator,
    Predicate,
    Tree,
    leaves,
    mapped,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundCondition:
    """A condition on the column at ``path``: the top-level column, then members of structures.

    ``type`` is the type in which rows are compared. ``values`` are scalars of it, never a NaN.
    ``value_set`` has the values of a list as pyarrow looks them up, with zero in both signs.
    ``ordinal`` is the condition's number within the predicate.  A condition on a list is
    ``of_elements``: it is true if it is true for any element.
    """

    ordinal: int
    path: tuple[str, ...]
    operator: Operator
    type: pa.DataType
    values: tuple[pa.Scalar, ...] = field(default=(), repr=False)
    value_set: pa.Array = field(repr=False)
    of_elements: bool = False


BoundPredicate: TypeAlias = Tree[BoundCondition]

_LISTS = (Operator.IN, Operator.NOT_IN)
#: The operators that a condition on a list may have.  A negation could mean any element or all of
#: them.
_OF_ANY_ELEMENT = frozenset(
    {
        Operator.EQUAL,
        Operator.IN,
        Operator.LESS,
        Operator.LESS_OR_EQUAL,
        Operator.GREATER,
        Operator.GREATER_OR_EQUAL,
    }
)
#: A negated comparison in a type that has no NaN.
_WITHOUT_NAN = {
    Operator.NOT_LESS: Operator.GREATER_OR_EQUAL,
    Operator.NOT_LESS_OR_EQUAL: Operator.GREATER,
    Operator.NOT_GREATER: Operator.LESS_OR_EQUAL,
    Operator.NOT_GREATER_OR_EQUAL: Operator.LESS,
}
#: The comparison with the value below, in place of one with a value between two of the type.
_WITH_FLOOR = {
    Operator.LESS: Operator.LESS_OR_EQUAL,
    Operator.GREATER_OR_EQUAL: Operator.GREATER,
    Operator.NOT_LESS: Operator.NOT_LESS_OR_EQUAL,
    Operator.NOT_GREATER_OR_EQUAL: Operator.NOT_GREATER,
}
#: Operators that are true for every value if the other side is below all values of the type; the
#: others are then true for none.
_ABOVE_ALL = {
    Operator.NOT_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
    Operator.NOT_LESS,
    Operator.NOT_LESS_OR_EQUAL,
}
#: Operators that are true for every value if the other side is a NaN; the others for none.
_BESIDE_NAN = {
    Operator.NOT_EQUAL,
    Operator.NOT_LESS,
    Operator.NOT_LESS_OR_EQUAL,
    Operator.NOT_GREATER,
    Operator.NOT_GREATER_OR_EQUAL,
}


def bind(predicate: Predicate, schema: pa.Schema, paths: Sequence[str] = ()) -> BoundPredicate:
    """Return the predicate on the columns of ``schema``.

    ``paths`` are the files that an error names.  Raises PolicyError for a column that does not
    exist or cannot be compared, or a value that the column cannot hold.
    """
    return mapped(joined(predicate), _Binder(schema=schema, paths=paths).bind)


def bound_conditions(predicate: BoundPredicate | None) -> list[BoundCondition]:
    """Return all conditions, in the order of their ordinals."""
    return [] if predicate is None else list(leaves(predicate))


class _Binder:
    """Binds one condition after the other, and numbers them."""

    def __init__(self, *, schema: pa.Schema, paths: Sequence[str]) -> None:
        self._schema = schema
        self._paths = paths
        self._count = 0

    def bind(self, given: Condition) -> BoundCondition:
        path, found = self._resolve(given)
        of_elements = bool(given.values) and _is_list(found)
        stored = _stored_type(found.value_type if of_elements else found)
        if of_elements and given.operator not in _OF_ANY_ELEMENT:
            raise PolicyError(
                f"a list cannot be compared with {given.operator}: conditions mean any element",
                hint=f"ask with {', '.join(sorted(_OF_ANY_ELEMENT))}",
                column=given.column,
            )
        if any(isinstance(value, Beginning) for value in given.values):
            _refuse_beginning(given.column, found)
        compared = _COMPARED.get(stored.id, _as_stored)(stored)
        if given.values and not _is_comparable(compared):
            raise PolicyError(
                f"a column of type {found} cannot be compared",
                hint=_instead(given.column, found),
                column=given.column,
            )
        operator, scalars = _comparison(given, stored, compared)
        ordinal, self._count = self._count, self._count + 1
        return BoundCondition(
            ordinal=ordinal,
            path=path,
            operator=operator,
            type=compared,
            values=scalars,
            value_set=_value_set(scalars if operator in _LISTS else (), compared),
            of_elements=of_elements,
        )

    def _resolve(self, given: Condition) -> tuple[tuple[str, ...], pa.DataType]:
        """Return the path and type of a given column: a path, or the only column of a dotted name.

        A path of one name is a column of that name or, if there is none, a dotted name.  If no
        column has a name, it means the columns whose names differ from it only in case, as in SQL.
        """
        found = (
            _readings(self._schema, given.column)
            or _in_any_case(self._schema, given.column, str.lower)
            # Last, for GRÖSSE in place of Größe: names may be equal by it alone.
            or _in_any_case(self._schema, given.column, str.casefold)
        )
        if given.path is not None and (given.path in found or len(given.path) > 1):
            wanted = [part.casefold() for part in given.path]
            exact = {path: of for path, of in found.items() if path == given.path}
            alike = {p: of for p, of in found.items() if [part.casefold() for part in p] == wanted}
            found = exact or alike
        if not found and (elements := _elements(self._schema, given)):
            return elements
        if not found:
            error = unknown_column(
                given.column, names_beside(given.column, self._schema), self._paths
            )
            if given.values == (True,):
                # A word that is a condition alone may have been meant as a value: it is not shown.
                error.message = (
                    "the condition needs an operator: no column has the name alone in it"
                )
            raise error
        if len(found) > 1:
            spelled = [f"pc.field({', '.join(map(json.dumps, path))})" for path in found]
            raise PolicyError(
                f"there are {len(found)} columns that this name may mean: {' and '.join(spelled)}",
                hint="ask for one of them by an expression",
                column=given.column,
            )
        return next(iter(found.items()))


def _refuse_beginning(column: str, found: pa.DataType) -> None:
    """Raise PolicyError if a column has no texts, or is a list.

    A beginning becomes two conditions. In a list they may be true for two different elements,
    although no element is between the bounds.
    """
    if not _is_of_texts(_stored_type(found)):
        raise PolicyError(
            f"like and starts_with are for texts, not for {found}",
            hint=_instead(column, found),
            column=column,
        )


def _instead(column: str, found: pa.DataType) -> str:
    """Return what can be asked of a column whose type the condition does not fit."""
    if pa.types.is_temporal(found) and not pa.types.is_duration(found):
        return f"ask for a range: {column} >= FIRST and {column} < NEXT"
    if pa.types.is_struct(found) and found.num_fields:
        return f"ask for a member: {column}.{found.field(0).name}"
    if _is_list(found) and _is_comparable(_stored_type(found.value_type)):
        return f"ask for one of its values: {column} = VALUE"
    if _is_comparable(_stored_type(found)):
        return f"compare it: {column} = VALUE"
    return "secure-bloom sql \"select * from 'TABLE' where CONDITION\" asks more of it"


def _is_of_texts(stored: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(stored) for is_kind in kinds)


def _as_in_pyarrow(values: tuple[object, ...], wanted: pa.DataType) -> tuple[object, ...]:
    """Return the values, cast as pyarrow casts the values of ``isin``.

    Returns all of them, or none if one cannot be cast.
    """
    try:
        return tuple(pa.array(list(values)).cast(wanted))
    except pa.ArrowException:
        return values


def _comparison(
    given: Condition, stored: pa.DataType, compared: pa.DataType
) -> tuple[Operator, tuple[pa.Scalar, ...]]:
    """Return the bound condition's operator, and its values as scalars to compare with."""
    values = _as_in_pyarrow(given.values, stored) if given.is_cast else given.values
    values = tuple(map(_without_numpy, values))
    exact = exact_scalars(stored, values) if given.operator in _LISTS else None
    if exact is None:
        operator, scalars = _settled(given.operator, coerced_values(given.column, stored, values))
    else:
        operator, scalars = given.operator, exact
    if given.never_true:
        operator, scalars = Operator.IN, ()
    if not pa.types.is_floating(compared):
        operator = _WITHOUT_NAN.get(operator, operator)
    if compared != stored:
        scalars = tuple(pa.array(list(scalars), stored).cast(compared)) if scalars else ()
    return operator, scalars


def _settled(
    operator: Operator, coerced: Sequence[Coerced]
) -> tuple[Operator, tuple[pa.Scalar, ...]]:
    """Return the condition on values of the type.

    The list of values is empty if all rows get the same answer.
    """
    if operator in _LISTS or not coerced:
        return operator, tuple(value.floor for value in coerced if value.is_exact)
    (value,) = coerced
    if value.is_nan or value.floor is None:
        always = _BESIDE_NAN if value.is_nan else _ABOVE_ALL
        return Operator.NOT_IN if operator in always else Operator.IN, ()
    if value.is_exact:
        return operator, (value.floor,)
    if operator in (Operator.EQUAL, Operator.NOT_EQUAL):
        return Operator.IN if operator is Operator.EQUAL else Operator.NOT_IN, ()
    return _WITH_FLOOR.get(operator, operator), (value.floor,)


def _value_set(scalars: tuple[pa.Scalar, ...], of: pa.DataType) -> pa.Array:
    if not scalars:
        # pyarrow makes no array from a list of Python's where an extension type is inside.
        return pa.nulls(0, of)
    found = pa.array(list(scalars), of)
    if pa.types.is_floating(of) and pc.any(pc.equal(found, pa.scalar(0.0, of))).as_py():
        found = pa.concat_arrays([found, pa.array([0.0, -0.0], of)])
    return found


def _readings(within: pa.Schema | pa.StructType, name: str) -> dict[tuple[str, ...], pa.DataType]:
    """Return the columns and members of structures that this dotted name may mean.

    They are looked up by each prefix of the name, because a schema may have thousands of columns.
    """
    if not _is_text(name):
        return {}
    candidates = [(index, "") for index in within.get_all_field_indices(name)]
    for dot in [place for place, char in enumerate(name) if char == "."][:MAX_DEPTH]:
        beginning, below = name[:dot], name[dot + 1 :]
        candidates += [(index, below) for index in within.get_all_field_indices(beginning)]
    found: dict[tuple[str, ...], pa.DataType] = {}
    for index, below in sorted(candidates):
        column = within.field(index)
        if column.name == name:
            found.setdefault((name,), column.type)
        elif pa.types.is_struct(column.type):
            for path, of in _readings(column.type, below).items():
                found.setdefault((column.name, *path), of)
    return found


def _in_any_case(
    within: pa.Schema | pa.StructType, name: str, fold: Callable[[str], str]
) -> dict[tuple[str, ...], pa.DataType]:
    """Return the columns and members whose dotted name differs from ``name`` in case alone."""
    found: dict[tuple[str, ...], pa.DataType] = {}
    wanted = fold(name)
    for column in within:
        own = fold(column.name)
        if own == wanted:
            found[column.name,] = column.type
        elif wanted.startswith(f"{own}.") and pa.types.is_struct(column.type):
            for path, of in _in_any_case(column.type, wanted[len(own) + 1 :], fold).items():
                found[column.name, *path] = of
    return found


def _elements(schema: pa.Schema, given: Condition) -> tuple[tuple[str, ...], pa.DataType] | None:
    """Return the list whose elements a name means, ``tags.element``, or None.

    Raises PolicyError for what cannot be asked of elements.
    """
    name = short_name(given.column).lower()
    list_name, _, last = name.rpartition(".")
    readings = _in_any_case(schema, list_name, str.lower) if last == ELEMENT else {}
    if len(readings) == 1 and _is_list(of := next(iter(readings.values()))):
        if not given.values:
            raise PolicyError(
                "elements of a list are not tested for null",
                hint="the list itself is: leave .element out",
                column=given.column,
            )
        if _is_comparable(_stored_type(of.value_type)):
            return next(iter(readings.items()))
    every = [member for column in schema for member in members_of(column) if ELEMENT in member]
    # Also without the names of elements, as in SQL for a list that unnest takes apart.
    every += [tuple(part for part in member if part != ELEMENT) for member in every]
    every = [member for member in every if len(member) > 1]
    if any(f"{'.'.join(member)}.".lower().startswith(f"{name}.") for member in every):
        raise PolicyError(
            "elements of a list of structures are not compared",
            hint="secure-bloom sql \"select t.* from 'TABLE' t, unnest(t.LIST) u(e) "
            'where e.MEMBER = 3" compares them',
            column=given.column,
        )
    return None


def _is_text(name: str) -> bool:
    """Return whether a column can have this name. Arguments that are not UTF-8 have surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_numpy(value: object) -> object:
    """Return a numpy datetime64 as a pyarrow timestamp.

    NaT, and units finer than ns, are returned unchanged.
    """
    if not isinstance(value, np.datetime64) or np.isnat(value):
        return value
    unit = np.datetime_data(value)[0]
    if unit in _FINER:
        return value
    # pyarrow has no coarser units; each of them is a number of seconds.
    unit = unit if unit in TICKS else "s"
    exact = value.astype(f"datetime64[{unit}]")
    return pa.scalar(int(exact.astype(np.int64)), pa.timestamp(unit)) if exact == value else value


#: Units of numpy below the nanosecond.
_FINER = ("ps", "fs", "as")


def _stored_type(column: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, without dictionary and extension."""
    if isinstance(column, pa.BaseExtensionType):
        return _stored_type(column.storage_type)
    return _stored_type(column.value_type) if pa.types.is_dictionary(column) else column


def _is_list(column: pa.DataType) -> bool:
    return column.id in _LIST_TYPES


#: The ids of types of lists.
_LIST_TYPES = frozenset(
    {pa.list_(pa.null()).id, pa.large_list(pa.null()).id, pa.list_(pa.null(), 1).id}
)


def _as_stored(stored: pa.DataType) -> pa.DataType:
    return stored


def _decimal128(stored: pa.DataType) -> pa.DataType:
    return pa.decimal128(stored.precision, stored.scale)


#: Types that pyarrow cannot compare or look up -> the type to compare in; it has all their values.
_COMPARED: dict[int, Callable[[pa.DataType], pa.DataType]] = {
    pa.float16().id: lambda _: pa.float32(),
    pa.decimal32(1).id: _decimal128,
    pa.decimal64(1).id: _decimal128,
    pa.string_view().id: lambda _: pa.string(),
    pa.binary_view().id: lambda _: pa.binary(),
}


def _is_comparable(column: pa.DataType) -> bool:
    return not (pa.types.is_nested(column) or pa.types.is_null(column))


_Joined: TypeAlias = AllOf[Condition] | AnyOf[Condition]

#: The operators that are joined in an OR, and in an AND: of comparisons with one value, and of
#: lists.  The second one is the operator of the result.
_IN_OR = frozenset({Operator.EQUAL, Operator.IN})
_IN_AND = frozenset({Operator.NOT_EQUAL, Operator.NOT_IN})


def joined(predicate: Predicate) -> Predicate:
    """Return an equal predicate, in which comparisons of one column in one AND or OR are a list."""
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
