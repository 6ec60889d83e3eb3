"""Translate a pyarrow.compute expression into a predicate.

pyarrow shows the parts of an expression only in its pickle, which is an Arrow IPC file.  The file's
schema metadata spell the expression in prefix order.  Its columns hold the literals, one row each.

    call: equal | field_ref: email | literal: 0 | end: equal

The expression is built again from what was read, and must equal the given one.  So if another
version of pyarrow has another form, the expression is refused and never misread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.tree import (
    MAX_DEPTH,
    AllOf,
    AnyOf,
    Condition,
    Operator,
    Predicate,
    beginning,
    negated,
)

_COMPARISONS = {
    "equal": Operator.EQUAL,
    "not_equal": Operator.NOT_EQUAL,
    "less": Operator.LESS,
    "less_equal": Operator.LESS_OR_EQUAL,
    "greater": Operator.GREATER,
    "greater_equal": Operator.GREATER_OR_EQUAL,
}
_JOINS: dict[str, type[AllOf[Condition] | AnyOf[Condition]]] = {
    "and_kleene": AllOf,
    "or_kleene": AnyOf,
}
#: The operator for exchanged sides: `3 < x` is `x > 3`.
_MIRRORED = {
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}
_NAN_IS_NULL = "write is_null() without nan_is_null: a NaN is no null here"
#: Hints for calls that have no counterpart here.
_INSTEAD = {
    "is_nan": "there is no test for NaN: read the column, and filter its rows with pyarrow",
}
_HINT = "columns compared with values, is_in, is_null, is_valid, starts_with, joined by & | ~"


def from_expression(expression: pc.Expression) -> Predicate:
    """Return the predicate that an expression describes.

    Raises PolicyError for expressions of any other form.

    The predicate selects the rows that pyarrow would select, nulls included.  ``isin`` is false for
    a null, never unknown, so ``~isin`` is true for it.  As in pyarrow, values of ``isin`` are cast
    to the column's type if they can be, so doubles are rounded to FLOATs for a FLOAT column.  Two
    things differ on purpose: a NaN among the values is refused, and a zero is found whatever its
    sign.
    """
    try:
        content = expression.__reduce__()[1][0]
        with pa.ipc.open_file(content) as file:
            literals = file.get_batch(0)
        parts = _Parts(_spelling(memoryview(content)), literals)
        predicate, rebuilt = parts.predicate(MAX_DEPTH)
    except (LookupError, TypeError, ValueError, struct.error, pa.ArrowException):
        raise _refusal() from None
    if not rebuilt.equals(expression):
        raise _refusal()
    return predicate


def _refusal(hint: str = _HINT) -> PolicyError:
    return PolicyError("the expression has parts that are not understood", hint=hint)


class _Parts:
    """The spelled parts of an expression, read from the front."""

    def __init__(self, spelling: Iterator[tuple[str, str]], literals: pa.RecordBatch) -> None:
        self._spelling = spelling
        self._literals = literals

    def predicate(self, depth: int) -> tuple[Predicate, pc.Expression]:
        """Return the next call as a predicate, and as the expression that it represents."""
        if depth == 0:
            raise PolicyError(
                f"the expression nests deeper than {MAX_DEPTH} levels",
                hint="many values of one column are a list: field.isin([...])",
            )
        kind, function = next(self._spelling, ("", ""))
        if kind in ("field_ref", "nested_field_ref"):
            raise _refusal("compare a boolean column with True: pc.field(...) == True")
        if kind == "call" and function in _INSTEAD:
            raise _refusal(_INSTEAD[function])
        if kind != "call":
            raise ValueError
        build = _CALLS[function]
        return build(self, function, depth - 1)

    def join(self, function: str, depth: int) -> tuple[Predicate, pc.Expression]:
        """Return ``and_kleene`` or ``or_kleene`` of two calls."""
        left, right = self.predicate(depth), self.predicate(depth)
        self._end(function)
        both = left[1] & right[1] if function == "and_kleene" else left[1] | right[1]
        return _JOINS[function](parts=(left[0], right[0])), both

    def inversion(self, function: str, depth: int) -> tuple[Predicate, pc.Expression]:
        """Return ``invert`` of a call."""
        inner, expression = self.predicate(depth)
        self._end(function)
        return negated(inner), ~expression

    def comparison(self, function: str, _depth: int) -> tuple[Predicate, pc.Expression]:
        """Return a comparison of a column with a literal, in either order."""
        sides = [self._operand(), self._operand()]
        self._end(function)
        (names, values) = [[s for s in sides if isinstance(s, t)] for t in (tuple, pa.Scalar)]
        operator = _COMPARISONS[function]
        if isinstance(sides[0], pa.Scalar):
            operator = _MIRRORED.get(operator, operator)
        expression = pc.Expression._call(function, [_expression(side) for side in sides])
        found = Condition(
            column=".".join(names[0]), operator=operator, values=(values[0],), path=names[0]
        )
        return found, expression

    def membership(self, function: str, _depth: int) -> tuple[Predicate, pc.Expression]:
        """Return ``is_in`` of a column."""
        name = self._operand()
        values = pa.array(self._options()["value_set"].values)
        self._end(function)
        expression = _expression(name).isin(values)
        return _two_valued(name, values), expression

    def beginning(self, _function: str, _depth: int) -> tuple[Predicate, pc.Expression]:
        """Return ``starts_with`` of a column."""
        name, options = self._operand(), self._options()
        self._end("starts_with")
        pattern = options["pattern"].as_py()
        text = pattern.decode() if isinstance(pattern, bytes) else pattern
        if options["ignore_case"].as_py():
            raise _refusal("starts_with is answered without ignore_case")
        return beginning(name, text), pc.starts_with(_expression(name), pattern=text)

    def null_test(self, function: str, _depth: int) -> tuple[Predicate, pc.Expression]:
        """Return ``is_null`` or ``is_valid`` of a column."""
        name = self._operand()
        if function == "is_null" and self._options()["nan_is_null"].as_py():
            raise _refusal(_NAN_IS_NULL)
        self._end(function)
        operator = Operator.IS_NULL if function == "is_null" else Operator.IS_NOT_NULL
        tested = getattr(_expression(name), function)()
        return Condition(column=".".join(name), operator=operator, path=name), tested

    def _operand(self) -> tuple[str, ...] | pa.Scalar:
        """Return a column as its path, or a literal."""
        kind, value = next(self._spelling)
        if kind == "literal":
            return self._literals.column(int(value))[0]
        if kind == "nested_field_ref":
            return tuple(self._field(*next(self._spelling)) for _ in range(int(value)))
        return (self._field(kind, value),)

    def _field(self, kind: str, value: str) -> str:
        if kind != "field_ref":
            raise ValueError
        return value

    def _options(self) -> Any:
        kind, value = next(self._spelling)
        if kind != "options":
            raise ValueError
        return self._literals.column(int(value))[0]

    def _end(self, function: str) -> None:
        if next(self._spelling) != ("end", function):
            raise ValueError


_CALLS: dict[str, Callable[[_Parts, str, int], tuple[Predicate, pc.Expression]]] = {
    **dict.fromkeys(_JOINS, _Parts.join),
    **dict.fromkeys(_COMPARISONS, _Parts.comparison),
    "invert": _Parts.inversion,
    "is_in": _Parts.membership,
    "starts_with": _Parts.beginning,
    "is_null": _Parts.null_test,
    "is_valid": _Parts.null_test,
}


def _two_valued(path: tuple[str, ...], values: pa.Array) -> Predicate:
    """Return membership as pyarrow has it: a null is a member if null is among the values.

    The result is never unknown.
    """
    column = ".".join(path)
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        raise PolicyError(
            "the expression looks for NaN in a list, and NaN equals no value", column=column
        )
    members = Condition(
        column=column,
        operator=Operator.IN,
        values=tuple(values.drop_null()),
        is_cast=True,
        path=path,
    )
    has_null = values.null_count > 0
    null_test = Condition(
        column=column, operator=Operator.IS_NULL if has_null else Operator.IS_NOT_NULL, path=path
    )
    join = AnyOf if has_null else AllOf
    return join(parts=(null_test, members))


def _expression(operand: Any) -> pc.Expression:
    return pc.field(operand) if isinstance(operand, tuple) else pc.scalar(operand)


def _spelling(content: memoryview) -> Iterator[tuple[str, str]]:
    """Yield the schema's metadata with repeated keys, which pyarrow's own dict would merge.

    The file begins with ARROW1 and 2 bytes of padding, then a mark and a length of 4 bytes each,
    then the flatbuffer of a Message.  Field 2 of the Message is a Schema. Field 2 of the Schema is
    a vector of KeyValue.
    """
    buffer = content[16:]
    schema = _follow(buffer, _member(buffer, _follow(buffer, 0), 2))
    pairs = _follow(buffer, _member(buffer, schema, 2))
    for index in range(_unsigned(buffer, pairs)):
        pair = _follow(buffer, pairs + 4 + 4 * index)
        yield _string(buffer, _member(buffer, pair, 0)), _string(buffer, _member(buffer, pair, 1))


def _unsigned(buffer: memoryview, place: int) -> int:
    value: int = struct.unpack_from("<I", buffer, place)[0]
    return value


def _follow(buffer: memoryview, place: int) -> int:
    """Return the position that the offset at ``place`` points to."""
    return place + _unsigned(buffer, place)


def _member(buffer: memoryview, table: int, index: int) -> int:
    """Return the position of a field of a table, by the table's vtable."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    offset: int = struct.unpack_from("<H", buffer, vtable + 4 + 2 * index)[0]
    return table + offset


def _string(buffer: memoryview, place: int) -> str:
    start = _follow(buffer, place)
    return str(buffer[start + 4 : start + 4 + _unsigned(buffer, start)], "utf-8")
