"""A predicate held against the table's schema: each condition gets its column, type and values.

Values become scalars of the column's own type, however they were given; one that the type cannot
hold is refused, never rounded.  What the row groups are judged by, and what the rows are compared
with, are the same scalars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.reading.predicates import AllOf, Condition, Operator, Predicate
from secure_bloom.schema import unknown_column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundCondition:
    """A condition on the column at ``path``: the top-level column, then members of structures.

    ``type`` is what rows are compared in; ``values`` are scalars of it, NaN left out of lists, and
    ``value_set`` is those of a list as pyarrow looks them up: a zero stands there with either sign.
    ``ordinal`` is its place among the conditions of the predicate.
    """

    ordinal: int
    path: tuple[str, ...]
    operator: Operator
    type: pa.DataType
    values: tuple[pa.Scalar, ...] = field(default=(), repr=False)
    value_set: pa.Array = field(repr=False)

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundAll:
    """Every part must be true."""

    parts: tuple[BoundPredicate, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundAny:
    """One part must be true."""

    parts: tuple[BoundPredicate, ...]


BoundPredicate = BoundCondition | BoundAll | BoundAny

_LISTS = (Operator.IN, Operator.NOT_IN)
#: What a negated comparison is where there is no NaN.
_WITHOUT_NAN = {
    Operator.NOT_LESS: Operator.GREATER_OR_EQUAL,
    Operator.NOT_LESS_OR_EQUAL: Operator.GREATER,
    Operator.NOT_GREATER: Operator.LESS_OR_EQUAL,
    Operator.NOT_GREATER_OR_EQUAL: Operator.LESS,
}


def bind(predicate: Predicate, schema: pa.Schema, paths: Sequence[str] = ()) -> BoundPredicate:
    """The predicate on the columns of ``schema``, of files at ``paths``.

    Raises PolicyError for a column that is not there or cannot be compared, or a value that it
    cannot hold.
    """
    return _Binder(schema=schema, paths=paths).bind(predicate)


def bound_conditions(predicate: BoundPredicate | None) -> list[BoundCondition]:
    """All conditions, by their ordinals."""
    if predicate is None:
        return []
    if isinstance(predicate, BoundCondition):
        return [predicate]
    return [condition for part in predicate.parts for condition in bound_conditions(part)]


class _Binder:
    """Counts conditions while it walks the tree."""

    def __init__(self, *, schema: pa.Schema, paths: Sequence[str]) -> None:
        self._schema = schema
        self._paths = paths
        self._count = 0

    def bind(self, predicate: Predicate) -> BoundPredicate:
        if isinstance(predicate, Condition):
            return self._condition(predicate)
        parts = tuple(self.bind(part) for part in predicate.parts)
        return BoundAll(parts=parts) if isinstance(predicate, AllOf) else BoundAny(parts=parts)

    def _condition(self, given: Condition) -> BoundCondition:
        path, found = self._resolve(given.column)
        stored = _stored_type(found)
        compared = _COMPARED.get(stored.id, _as_stored)(stored)
        if given.values and not _is_comparable(compared):
            raise PolicyError(f"a column of type {found} is not compared", column=given.column)
        floats = pa.types.is_floating(compared)
        operator = given.operator if floats else _WITHOUT_NAN.get(given.operator, given.operator)
        taken = (scalar_of(given.column, stored, value) for value in given.values)
        scalars = tuple(pc.cast(scalar, compared) for scalar in taken)
        if operator in _LISTS:
            scalars = tuple(s for s in scalars if not (floats and math.isnan(s.as_py())))
        ordinal, self._count = self._count, self._count + 1
        return BoundCondition(
            ordinal=ordinal,
            path=path,
            operator=operator,
            type=compared,
            values=scalars,
            value_set=_value_set(scalars if operator in _LISTS else (), compared),
        )

    def _resolve(self, name: str) -> tuple[tuple[str, ...], pa.DataType]:
        """The column of that very name, or the member of a structure at that dotted path."""
        for column in self._schema:
            if column.name == name:
                return (name,), column.type
        for column in self._schema:
            below = name.removeprefix(f"{column.name}.")
            if below != name and (found := _member(column.type, below)) is not None:
                return (column.name, *found[0]), found[1]
        raise unknown_column(name, self._schema.names, self._paths)


def _value_set(scalars: tuple[pa.Scalar, ...], of: pa.DataType) -> pa.Array:
    arrays = [pa.array([scalar], of) for scalar in scalars]
    if pa.types.is_floating(of) and any(scalar.as_py() == 0.0 for scalar in scalars):
        arrays.append(pa.array([0.0, -0.0], of))
    return pa.concat_arrays(arrays) if arrays else pa.array([], of)


def _member(struct: pa.DataType, name: str) -> tuple[tuple[str, ...], pa.DataType] | None:
    if not pa.types.is_struct(struct):
        return None
    for member in struct:
        if member.name == name:
            return (name,), member.type
        below = name.removeprefix(f"{member.name}.")
        if below != name and (found := _member(member.type, below)) is not None:
            return (member.name, *found[0]), found[1]
    return None


def _stored_type(column: pa.DataType) -> pa.DataType:
    """The type of the values themselves: without dictionary and extension."""
    if isinstance(column, pa.BaseExtensionType):
        return _stored_type(column.storage_type)
    return _stored_type(column.value_type) if pa.types.is_dictionary(column) else column


def _as_stored(stored: pa.DataType) -> pa.DataType:
    return stored


def _decimal128(stored: pa.DataType) -> pa.DataType:
    return pa.decimal128(stored.precision, stored.scale)


#: In which type rows are compared where pyarrow does not compare, or look up, their own; all values
#: are values of it too.
_COMPARED: dict[int, Callable[[pa.DataType], pa.DataType]] = {
    pa.float16().id: lambda _: pa.float32(),
    pa.decimal32(1).id: _decimal128,
    pa.decimal64(1).id: _decimal128,
    pa.string_view().id: lambda _: pa.string(),
    pa.binary_view().id: lambda _: pa.binary(),
}


def _is_comparable(column: pa.DataType) -> bool:
    return not (pa.types.is_nested(column) or pa.types.is_null(column))


def scalar_of(column: str, wanted: pa.DataType, value: object) -> pa.Scalar:
    """``value`` as a scalar of the type ``wanted``; PolicyError, without it, if it is none."""
    try:
        if isinstance(value, pa.Scalar) and value.type != wanted:
            value = _from_scalar(value, wanted)
        if isinstance(value, pa.Scalar):
            return value
        convert = next((c for accepts, c in _CONVERTERS if accepts(wanted)), _as_it_is)
        return convert(value, wanted)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError, OverflowError):
        raise PolicyError(
            f"the value is not one that the column can hold, wanted {wanted}", column=column
        ) from None


def _from_scalar(value: pa.Scalar, wanted: pa.DataType) -> object:
    """What a scalar of pyarrow holds; times stay scalars, whose nanoseconds Python has not."""
    same_kind = [
        check(value.type) and check(wanted) for check in (pa.types.is_timestamp, pa.types.is_time)
    ]
    return pc.cast(value, wanted) if any(same_kind) else value.as_py()


def _as_it_is(value: object, wanted: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, wanted)


def _text(value: object, wanted: pa.DataType) -> pa.Scalar:
    if not isinstance(value, str):
        raise TypeError
    return pa.scalar(value, wanted)


def _binary(value: object, wanted: pa.DataType) -> pa.Scalar:
    if isinstance(value, UUID):
        value = value.bytes
    if isinstance(value, str):
        value = _bytes_of(value, wanted)
    if not isinstance(value, bytes):
        raise TypeError
    return pa.scalar(value, wanted)


def _bytes_of(text: str, wanted: pa.DataType) -> bytes:
    """``hex:00ff``, a UUID where the type has its 16 bytes, or the text itself."""
    if text.startswith("hex:"):
        return bytes.fromhex(text.removeprefix("hex:"))
    if pa.types.is_fixed_size_binary(wanted) and wanted.byte_width == 16 != len(text.encode()):
        return UUID(text).bytes
    return text.encode()


def _integer(value: Any, wanted: pa.DataType) -> pa.Scalar:
    number = int(value) if isinstance(value, str) else value
    if isinstance(number, bool) or int(number) != number:
        raise ValueError
    return pa.scalar(int(number), wanted)


def _float(value: Any, wanted: pa.DataType) -> pa.Scalar:
    if isinstance(value, bool):
        raise TypeError
    scalar = pa.scalar(float(value), wanted)
    if math.isinf(scalar.as_py()) and _is_finite(value):
        raise OverflowError
    return scalar


def _is_finite(value: Any) -> bool:
    """Whether the number is finite as it was given, however large."""
    return (
        Decimal(value).is_finite()
        if isinstance(value, str | int | Decimal)
        else math.isfinite(value)
    )


def _decimal(value: Any, wanted: pa.DataType) -> pa.Scalar:
    if isinstance(value, bool):
        raise TypeError
    return pa.scalar(Decimal(repr(value) if isinstance(value, float) else value), wanted)


_BOOLEANS = {"true": True, "false": False}


def _boolean(value: object, wanted: pa.DataType) -> pa.Scalar:
    if isinstance(value, str):
        value = _BOOLEANS.get(value.lower())
    if not isinstance(value, bool):
        raise TypeError
    return pa.scalar(value, wanted)


def _date(value: object, wanted: pa.DataType) -> pa.Scalar:
    day = date.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(day, date) or isinstance(day, datetime):
        raise TypeError
    return pa.scalar(day, wanted)


def _time(value: object, wanted: pa.DataType) -> pa.Scalar:
    text = value.isoformat() if isinstance(value, time) else value
    if not isinstance(text, str):
        raise TypeError
    # pyarrow reads no times from texts, but timestamps.
    on_a_day = pc.cast(pa.scalar(f"1970-01-01T{text}"), pa.timestamp(wanted.unit))
    number = pa.int32() if pa.types.is_time32(wanted) else pa.int64()
    return pc.cast(pa.scalar(on_a_day.value, number), wanted)


def _timestamp(value: object, wanted: pa.DataType) -> pa.Scalar:
    """Text without a zone is UTC; a column without a zone takes no text with one."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str):
        raise TypeError
    return _parsed_timestamp(value, wanted)


def _parsed_timestamp(text: str, wanted: pa.DataType) -> pa.Scalar:
    try:
        local = pc.cast(pa.scalar(text), pa.timestamp(wanted.unit))
    except pa.ArrowInvalid:
        if wanted.tz is None:
            raise
        return pc.cast(pa.scalar(text), pa.timestamp(wanted.unit, "UTC")).cast(wanted)
    if wanted.tz is None:
        return local
    return pc.cast(local, pa.int64()).cast(pa.timestamp(wanted.unit, "UTC")).cast(wanted)


_CONVERTERS = [
    (
        lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view(),
        _text,
    ),
    (
        lambda t: (
            pa.types.is_binary(t)
            or pa.types.is_large_binary(t)
            or pa.types.is_fixed_size_binary(t)
            or t == pa.binary_view()
        ),
        _binary,
    ),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (pa.types.is_time, _time),
    (pa.types.is_timestamp, _timestamp),
]
