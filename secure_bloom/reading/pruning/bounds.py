"""Read the bounds in statistics, and find out what they rule out of a column predicate.

Bounds are trusted only if their writer used an order that is known here.  ``column_orders`` names
the order of ``min_value`` and ``max_value``. The older ``min`` and ``max``, written in signed
order, count only if that is the type's order.  Writers may shorten bounds, so a bound is never
taken for a value of the column.  No bound covers a NaN: only ``nan_count`` says whether a chunk has
no NaN, or only NaN.  Statistics that contradict themselves are not believed. parquet.thrift,
Statistics and ColumnOrder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from secure_bloom.parquet.chunk_contradictions import in_counts, in_null_count
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.value_order import OrderKey
from secure_bloom.predicates.tree import LOOKUPS, Operator
from secure_bloom.reading.pruning.column_predicates import ColumnPredicate, StoredValue

#: Kinds whose older `min` and `max`, in signed order, are right.
_SIGNED_KINDS = {Kind.INTEGER, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.FLOAT}


class Bounds(NamedTuple):
    """Bounds and counts of values. ``low`` and ``high`` are order keys: both are set or none.

    An unknown count is None. ``values`` counts nulls too.
    """

    low: Any = None
    high: Any = None
    nulls: int | None = None
    nans: int | None = None
    values: int | None = None

    @property
    def is_all_null(self) -> bool:
        """Whether all are null, so that no comparison can be true."""
        return self.nulls is not None and self.nulls == self.values

    @property
    def is_all_nan(self) -> bool:
        """Whether all values are NaN or null, so that only a negated comparison can be true."""
        if not self.nans or self.nulls is None or self.low is not None:
            return False
        return self.nans + self.nulls == self.values


def chunk_bounds(predicate: ColumnPredicate, chunk: Chunk, *, has_order: bool) -> Bounds:
    """Return the bounds of a column chunk. Statistics that contradict themselves are not used."""
    meta_data, leaf = chunk.meta_data, chunk.leaf
    statistics, values = meta_data.statistics, meta_data.num_values
    if statistics is None or any(in_counts(leaf, meta_data, chunk.num_rows)):
        return Bounds(values=chunk.num_rows)
    low, high = statistics.min_value, statistics.max_value
    if not has_order or low is None or high is None:
        signed = has_signed_order(predicate.leaf)
        low, high = (statistics.min, statistics.max) if signed else (None, None)
    keys = keys_of(predicate.order, low, high)
    return Bounds(
        low=keys[0],
        high=keys[1],
        nulls=None if any(in_null_count(leaf, meta_data)) else statistics.null_count,
        nans=statistics.nan_count,
        values=values,
    )


def keys_of(order: OrderKey | None, low: bytes | None, high: bytes | None) -> tuple[Any, Any]:
    """Return both bounds as order keys, or (None, None) if they bound nothing."""
    if order is None or low is None or high is None:
        return None, None
    keys = order(low), order(high)
    # Every comparison with NaN is false, so a NaN as bound fails here too.
    return keys if None not in keys and keys[0] <= keys[1] else (None, None)


def has_signed_order(leaf: Leaf) -> bool:
    """Return whether the older ``min`` and ``max``, in signed order, bound the column's values."""
    logical = leaf.logical
    return logical.kind in _SIGNED_KINDS and logical.signed


def remaining(predicate: ColumnPredicate, bounds: Bounds) -> tuple[StoredValue, ...] | None:
    """Return the values that can still match within the bounds, or None if no row can match.

    For an operator other than ``=`` and ``in`` these are all values.
    """
    operator = predicate.condition.operator
    if operator is Operator.IS_NULL:
        return None if bounds.nulls == 0 else ()
    if bounds.is_all_null or (operator in LOOKUPS and predicate.values == ()):
        return None
    if not predicate.keys or operator is Operator.IS_NOT_NULL:
        return predicate.values or ()
    if bounds.is_all_nan and operator in _FALSE_OF_NAN:
        return None
    if bounds.low is None:
        return predicate.values or ()
    if operator in LOOKUPS:
        return predicate.between(bounds.low, bounds.high)
    return (predicate.values or ()) if _POSSIBLE[operator](bounds, predicate.keys) else None


#: Comparisons that no NaN makes true.
_FALSE_OF_NAN = {
    *LOOKUPS,
    Operator.LESS,
    Operator.LESS_OR_EQUAL,
    Operator.GREATER,
    Operator.GREATER_OR_EQUAL,
}


def _differs(bounds: Bounds, keys: tuple[Any, ...]) -> bool:
    """Return whether some value may differ from all ``keys``. A NaN always does."""
    if isinstance(bounds.low, float) and bounds.nans != 0:
        return True
    return not (bounds.low == bounds.high and bounds.low in keys)


def _or_nan(
    possible: Callable[[Bounds, tuple[Any, ...]], bool],
) -> Callable[[Bounds, tuple[Any, ...]], bool]:
    return lambda bounds, keys: bounds.nans != 0 or possible(bounds, keys)


_POSSIBLE: dict[Operator, Callable[[Bounds, tuple[Any, ...]], bool]] = {
    Operator.NOT_EQUAL: _differs,
    Operator.NOT_IN: _differs,
    # Bounds order capitals apart from small letters.
    **dict.fromkeys((Operator.ILIKE, Operator.NOT_ILIKE), lambda _bounds, _keys: True),
    Operator.LESS: lambda bounds, keys: bounds.low < keys[0],
    Operator.LESS_OR_EQUAL: lambda bounds, keys: bounds.low <= keys[0],
    Operator.GREATER: lambda bounds, keys: bounds.high > keys[0],
    Operator.GREATER_OR_EQUAL: lambda bounds, keys: bounds.high >= keys[0],
    Operator.NOT_LESS: _or_nan(lambda bounds, keys: bounds.high >= keys[0]),
    Operator.NOT_LESS_OR_EQUAL: _or_nan(lambda bounds, keys: bounds.high > keys[0]),
    Operator.NOT_GREATER: _or_nan(lambda bounds, keys: bounds.low <= keys[0]),
    Operator.NOT_GREATER_OR_EQUAL: _or_nan(lambda bounds, keys: bounds.low < keys[0]),
}
