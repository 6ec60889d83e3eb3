"""Translate a Polars expression into a predicate.

Polars shows the parts of an expression as JSON, in a form that may change.  The expression is built
again from what was read, and must equal the given one.  So if another version of Polars has another
form, the expression is refused and never misread.

    {"BinaryExpr": {"left": {"Column": "email"}, "op": "Eq", "right": {"Literal": ...}}}
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.tree import (
    MAX_DEPTH,
    AllOf,
    AnyOf,
    Condition,
    Operator,
    Predicate,
    beginning,
    condition,
    negated,
)

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    _Read = tuple[Predicate, pl.Expr]
    _Types = Mapping[str, pl.DataType]

#: Polars counts a NaN as larger than every number, so `>` is the negation of `<=`.
_COMPARISONS: dict[str, tuple[Operator, Operator, Callable[[Any, Any], Any]]] = {
    "Eq": (Operator.EQUAL, Operator.EQUAL, operator.eq),
    "NotEq": (Operator.NOT_EQUAL, Operator.NOT_EQUAL, operator.ne),
    "Lt": (Operator.LESS, Operator.NOT_LESS_OR_EQUAL, operator.lt),
    "LtEq": (Operator.LESS_OR_EQUAL, Operator.NOT_LESS, operator.le),
    "Gt": (Operator.NOT_LESS_OR_EQUAL, Operator.LESS, operator.gt),
    "GtEq": (Operator.NOT_LESS, Operator.LESS_OR_EQUAL, operator.ge),
}
_JOINS: dict[str, tuple[type[AllOf[Condition] | AnyOf[Condition]], Callable[[Any, Any], Any]]] = {
    "And": (AllOf, operator.and_),
    "Or": (AnyOf, operator.or_),
}
_HINT = (
    "columns compared with values, is_in, is_between, is_null, is_not_null, str.starts_with, "
    "joined by & | ~"
)


def is_polars(where: object) -> bool:
    """Return whether an object is an expression of Polars, without importing Polars."""
    kind = type(where)
    return kind.__name__ == "Expr" and kind.__module__.partition(".")[0] == "polars"


def from_polars(expression: pl.Expr, types: _Types | None = None) -> Predicate:
    """Return the predicate that an expression describes.  ``types`` are those of the columns.

    Raises PolicyError for expressions of any other form.  The predicate selects the rows that
    Polars would select, nulls and NaN included.  Two things differ on purpose: a NaN among the
    values is refused, and a number is never rounded to a FLOAT column.
    """
    try:
        content = json.loads(expression.meta.serialize(format="json"))
        predicate, rebuilt = _predicate(_Node(content, expression, types or {}), MAX_DEPTH)
        is_same = rebuilt.meta.eq(expression)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _refusal() from None
    except RecursionError:
        raise _too_deep() from None
    if not is_same:
        raise _refusal()
    return predicate


def _refusal(hint: str = _HINT) -> PolicyError:
    return PolicyError("the Polars expression has parts that are not understood", hint=hint)


def _too_deep() -> PolicyError:
    return PolicyError(
        f"the expression nests deeper than {MAX_DEPTH} levels",
        hint="many values of one column are a list: pl.col(...).is_in([...])",
    )


#: The fields of a part that hold the parts of which it is made. A function has a list of them.
_INPUTS = {
    "BinaryExpr": ("left", "right"),
    "Ternary": ("truthy", "falsy", "predicate"),
}


#: Polars' names of units of time in the JSON of an expression, and in a type.
_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}


class _Node:
    """A part of an expression: its content in JSON, and the part itself."""

    def __init__(self, content: dict[str, Any], expression: pl.Expr, types: _Types) -> None:
        ((self.kind, self.inner),) = content.items()
        self.expression = expression
        self._types = types
        #: ``Boolean.IsIn`` or the sign of a comparison, and the options of a function.
        self.name = self.kind
        self.options: Any = None
        if self.kind == "BinaryExpr":
            self.name = self.inner["op"]
        if self.kind == "Function":
            ((family, found),) = self.inner["function"].items()
            if isinstance(found, dict):
                ((found, self.options),) = found.items()
            self.name = f"{family}.{found}"

    @property
    def inputs(self) -> list[_Node]:
        """The parts of which this part is made, in their order."""
        names = _INPUTS.get(self.kind)
        contents = self.inner["input"] if names is None else [self.inner[it] for it in names]
        parts = reversed(self.expression.meta.pop())
        pairs = zip(contents, parts, strict=True)
        return [_Node(content, part, self._types) for content, part in pairs]

    def path(self) -> tuple[str, ...]:
        """Return the path of a column, or of a member of a structure."""
        if self.kind == "Column":
            return (self.inner,)
        if self.name == "StructExpr.FieldByName":
            (above,) = self.inputs
            return (*above.path(), self.options)
        if self.name == "TemporalExpr.CastTimeUnit":
            (column,) = self.inputs
            path = column.path()
            kind = self._types.get(path[0]) if len(path) == 1 else None
            # DuckDB writes it around every column of times; a cast to another unit would round.
            if getattr(kind, "time_unit", None) == _UNITS.get(self.options, ""):
                return path
        raise _refusal()

    def values(self) -> pa.Array:
        """Return the values of a literal."""
        import polars as pl

        if self.kind != "Literal":
            raise _refusal("columns are not compared with each other")
        return pl.select(self.expression).to_series().to_arrow()

    def value(self) -> pa.Scalar:
        """Return the value of a literal."""
        (value,) = self.values()
        return value


def _predicate(node: _Node, depth: int) -> _Read:
    """Parse a node. Return its predicate, and the same node rebuilt as a Polars expression."""
    if depth == 0:
        raise _too_deep()
    if node.kind == "Column":
        raise _refusal("compare a boolean column with True: pl.col(...) == True")
    return _READERS[node.name](node, depth - 1)


def _join(node: _Node, depth: int) -> _Read:
    kind, join = _JOINS[node.name]
    left, right = (_predicate(side, depth) for side in node.inputs)
    return kind(parts=(left[0], right[0])), join(left[1], right[1])


def _negation(node: _Node, depth: int) -> _Read:
    (inner,) = node.inputs
    found, expression = _predicate(inner, depth)
    return negated(found), ~expression


def _comparison(node: _Node, _depth: int) -> _Read:
    found, mirrored, compare = _COMPARISONS[node.name]
    left, right = node.inputs
    rebuilt = compare(left.expression, right.expression)
    if left.kind == "Literal":
        return _condition(right.path(), mirrored, left.value()), rebuilt
    return _condition(left.path(), found, right.value()), rebuilt


def _null_test(node: _Node, _depth: int) -> _Read:
    (column,) = node.inputs
    path, tested = column.path(), column.expression
    if node.name == "Boolean.IsNull":
        return condition(path, Operator.IS_NULL, None), tested.is_null()
    return condition(path, Operator.IS_NOT_NULL, None), tested.is_not_null()


def _membership(node: _Node, _depth: int) -> _Read:
    """Read ``is_in``: a null in the list equals nothing, and does not change ``~is_in``."""
    import pyarrow as pa

    column, listed = node.inputs
    values = listed.values()
    if isinstance(values, pa.ListArray | pa.LargeListArray):
        values = values.flatten()
    _refuse_nan(column.path(), values)
    found = condition(column.path(), Operator.IN, values.drop_null())
    return found, column.expression.is_in(listed.expression)


def _between(node: _Node, _depth: int) -> _Read:
    column, low, high = node.inputs
    closed = node.options["closed"].lower()
    least = Operator.NOT_LESS if closed in ("both", "left") else Operator.NOT_LESS_OR_EQUAL
    most = Operator.LESS_OR_EQUAL if closed in ("both", "right") else Operator.LESS
    bounds = ((least, low), (most, high))
    parts = tuple(_condition(column.path(), found, bound.value()) for found, bound in bounds)
    rebuilt = column.expression.is_between(low.expression, high.expression, closed=closed)
    return AllOf(parts=parts), rebuilt


def _beginning(node: _Node, _depth: int) -> _Read:
    column, start = node.inputs
    rebuilt = column.expression.str.starts_with(start.expression)
    return beginning(column.path(), start.value().as_py()), rebuilt


def _guarded_membership(node: _Node, _depth: int) -> _Read:
    """Read ``when(column.is_null()).then(None).otherwise(column.is_in(...))``, as DuckDB writes IN.

    The guard changes nothing: ``is_in`` of a null is null.
    """
    import polars as pl

    nothing, listed, guard = node.inputs
    if guard.name != "Boolean.IsNull" or listed.name != "Boolean.IsIn":
        raise _refusal()
    found, membership = _membership(listed, _depth)
    tested = listed.inputs[0].expression
    if nothing.value().is_valid or not guard.inputs[0].expression.meta.eq(tested):
        raise _refusal()
    return found, pl.when(tested.is_null()).then(nothing.expression).otherwise(membership)


_READERS: dict[str, Callable[[_Node, int], _Read]] = {
    **dict.fromkeys(_JOINS, _join),
    **dict.fromkeys(_COMPARISONS, _comparison),
    "Boolean.Not": _negation,
    "Boolean.IsNull": _null_test,
    "Boolean.IsNotNull": _null_test,
    "Boolean.IsIn": _membership,
    "Boolean.IsBetween": _between,
    "StringExpr.StartsWith": _beginning,
    "Ternary": _guarded_membership,
}


def _condition(path: tuple[str, ...], found: Operator, value: pa.Scalar) -> Condition:
    _refuse_nan(path, [value])
    return condition(path, found, value)


def _refuse_nan(path: tuple[str, ...], values: Iterable[pa.Scalar]) -> None:
    # Polars finds NaN equal to itself; here it equals nothing.
    held = (value.as_py() for value in values)
    if any(isinstance(value, float) and math.isnan(value) for value in held):
        raise PolicyError(
            "the expression looks for NaN, which equals no value", column=".".join(path)
        )
