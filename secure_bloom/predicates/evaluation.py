"""Evaluate a predicate on rows exactly, by pyarrow.compute.

A comparison with null is neither true nor false, and a row counts only if the whole predicate is
true.  ``in`` means equal to one of the values: NaN equals nothing, both zeros are equal, and for a
null neither ``in`` nor ``not in`` is true.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.predicates.binding import BoundCondition, BoundPredicate
from secure_bloom.predicates.tree import AllOf, Operator


def true_rows(predicate: BoundPredicate, table: pa.Table) -> pa.ChunkedArray:
    """Return a boolean for each row, null where the predicate is neither true nor false."""
    if isinstance(predicate, BoundCondition):
        column = _column(predicate, table)
        return (
            _of_elements(predicate, column) if predicate.of_elements else _test(predicate, column)
        )
    join = pc.and_kleene if isinstance(predicate, AllOf) else pc.or_kleene
    return functools.reduce(join, (true_rows(part, table) for part in predicate.parts))


def _column(condition: BoundCondition, table: pa.Table) -> pa.ChunkedArray:
    column, members = table.column(condition.path[0]), condition.path[1:]
    if not members:
        return column
    chunks = [_member(chunk, members) for chunk in column.iterchunks()]
    return pa.chunked_array(chunks) if chunks else pc.struct_field(column, list(members))


def _member(array: pa.StructArray, members: Sequence[str]) -> pa.Array:
    """Return the values at a path inside a structure. A value is null if the structure is null.

    ``pc.struct_field`` takes time for every member of a structure, so it is called only for nulls.
    """
    for member in members:
        place = array.type.get_field_index(member)
        has_nulls = array.null_count or place < 0
        array = pc.struct_field(array, member) if has_nulls else array.field(place)
    return array


def _test(condition: BoundCondition, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the result of the condition on each value, compared in the condition's type."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array(
            [chunk.storage for chunk in column.chunks], column.type.storage_type
        )
    column = column if column.type == condition.type else column.cast(condition.type)
    return _TESTS[condition.operator](column, condition)


def _of_elements(condition: BoundCondition, lists: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whether any element of a list fulfils the condition. A null list gives null."""
    found = []
    for chunk in lists.chunks:
        elements = pa.chunked_array([pc.list_flatten(chunk)])
        true = pc.fill_null(_test(condition, elements), fill_value=False).to_numpy()
        # A row may have millions of elements: no number is made for each.
        lengths = pc.fill_null(pc.list_value_length(chunk), 0).to_numpy()
        any_element, is_filled = np.zeros(len(chunk), np.bool_), lengths > 0
        if is_filled.any():
            starts = np.cumsum(lengths, dtype=np.int64) - lengths
            any_element[is_filled] = np.logical_or.reduceat(true, starts[is_filled])
        found.append(pa.array(any_element, mask=chunk.is_null().to_numpy(zero_copy_only=False)))
    return pa.chunked_array(found, pa.bool_())


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda column, condition: compare(column, condition.values[0])


def _opposite(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda column, condition: pc.invert(compare(column, condition.values[0]))


def _membership(column: pa.ChunkedArray, condition: BoundCondition) -> Any:
    found = pc.is_in(column, value_set=condition.value_set)
    return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_()))


def _in_any_case(column: pa.ChunkedArray, condition: BoundCondition) -> Any:
    """Return whether each text matches the pattern of ILIKE, which may end in the wildcard ``%``.

    The text and the pattern are compared in lower case.
    """
    pattern = pc.utf8_lower(condition.values[0]).as_py()
    texts = pc.utf8_lower(column)
    if pattern.endswith("%"):
        return pc.starts_with(texts, pattern.rstrip("%"))
    return pc.equal(texts, pattern)


_TESTS: dict[Operator, Callable[[pa.ChunkedArray, BoundCondition], Any]] = {
    Operator.EQUAL: _comparison(pc.equal),
    Operator.NOT_EQUAL: _comparison(pc.not_equal),
    Operator.LESS: _comparison(pc.less),
    Operator.LESS_OR_EQUAL: _comparison(pc.less_equal),
    Operator.GREATER: _comparison(pc.greater),
    Operator.GREATER_OR_EQUAL: _comparison(pc.greater_equal),
    Operator.NOT_LESS: _opposite(pc.less),
    Operator.NOT_LESS_OR_EQUAL: _opposite(pc.less_equal),
    Operator.NOT_GREATER: _opposite(pc.greater),
    Operator.NOT_GREATER_OR_EQUAL: _opposite(pc.greater_equal),
    Operator.IN: _membership,
    Operator.NOT_IN: lambda column, condition: pc.invert(_membership(column, condition)),
    Operator.ILIKE: _in_any_case,
    Operator.NOT_ILIKE: lambda column, condition: pc.invert(_in_any_case(column, condition)),
    Operator.IS_NULL: lambda column, _: pc.is_null(column),
    Operator.IS_NOT_NULL: lambda column, _: pc.is_valid(column),
}
