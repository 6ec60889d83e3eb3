"""Translate the filters that Spark pushes down into conditions that rule out row groups.

Spark applies every filter to the rows again, so a filter is only used here if that cannot lose a
row.  To Spark NaN equals NaN and is greater than any number; here NaN equals nothing.  For example,
`x > 1` becomes "not at most 1", and a comparison with NaN is left to Spark.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as sd

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.hive_partitions import Values, folder_values
from secure_bloom.predicates.binding import BoundCondition, bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.tree import AllOf, Condition, Operator, Predicate

#: A condition, or conditions joined, as :func:`secure_bloom.read_table` takes them.
Structure = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedTable:
    """The table that filters are about.

    ``stored`` is the schema of the files' columns.  ``spark`` is the schema of the query, ``own``
    the schema of the table itself.  ``names`` maps Spark's names of columns to the table's.
    ``folders`` has the values of partition columns, file by file.
    """

    stored: pa.Schema
    spark: pa.Schema
    own: pa.Schema
    names: Mapping[str, str]
    folders: Sequence[Values]


def conditions(filters: Iterable[sd.Filter], table: QueriedTable) -> list[Structure]:
    """Return conditions that are all true for every row that satisfies the filters."""
    return [found for pushed in filters for found in _condition(_plain(pushed), table)]


def structure(predicate: Predicate) -> Structure:
    """Return a predicate as nested tuples: (column, operator, value) or ("and", part, ...)."""
    if isinstance(predicate, Condition):
        is_list = predicate.operator in (Operator.IN, Operator.NOT_IN)
        values = (predicate.values,) if is_list else predicate.values
        return (predicate.path or predicate.column, predicate.operator, *values)
    join = "and" if isinstance(predicate, AllOf) else "or"
    return (join, *map(structure, predicate.parts))


def in_utc(predicate: Predicate, instants: Collection[str]) -> Predicate:
    """Return the predicate, with zones removed from values that are compared with ``instants``.

    These columns are instants in UTC, and their Arrow type has no zone.
    """
    if not isinstance(predicate, Condition):
        return replace(predicate, parts=tuple(in_utc(part, instants) for part in predicate.parts))
    if predicate.column not in instants:
        return predicate
    return replace(predicate, values=tuple(map(_without_zone, predicate.values)))


def _without_zone(value: object) -> object:
    """Return the timestamp in a text with a zone, or any other value unchanged."""
    if not isinstance(value, str):
        return value
    # Nanoseconds do not reach far years; microseconds do.
    for unit in ("ns", "us"):
        try:
            return pa.scalar(value).cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit))
        except pa.ArrowInvalid:
            continue
    return value


@functools.cache
def _operators() -> Mapping[type[sd.Filter], tuple[Operator, Operator]]:
    """Return the operators of a filter and of its negation. Spark 4.0 has no filters."""
    return {
        sd.EqualTo: (Operator.EQUAL, Operator.NOT_EQUAL),
        sd.In: (Operator.IN, Operator.NOT_IN),
        sd.LessThan: (Operator.LESS, Operator.NOT_LESS),
        sd.LessThanOrEqual: (Operator.LESS_OR_EQUAL, Operator.NOT_LESS_OR_EQUAL),
        sd.GreaterThan: (Operator.NOT_LESS_OR_EQUAL, Operator.LESS_OR_EQUAL),
        sd.GreaterThanOrEqual: (Operator.NOT_LESS, Operator.LESS),
        sd.IsNull: (Operator.IS_NULL, Operator.IS_NOT_NULL),
        sd.IsNotNull: (Operator.IS_NOT_NULL, Operator.IS_NULL),
    }


def _plain(pushed: sd.Filter) -> sd.Filter:
    """Return `<=>` as an equality, or a test for null, and other filters unchanged."""
    if isinstance(pushed, sd.EqualNullSafe):
        if pushed.value is None:
            return sd.IsNull(pushed.attribute)
        return sd.EqualTo(pushed.attribute, pushed.value)
    if isinstance(pushed, sd.Not) and isinstance(pushed.child, sd.EqualNullSafe):
        # A null is not equal to a value, so its row stays.
        is_null = pushed.child.value is None
        return sd.IsNotNull(pushed.child.attribute) if is_null else pushed
    return pushed


def _condition(pushed: sd.Filter, table: QueriedTable) -> Iterator[Structure]:
    is_negated = isinstance(pushed, sd.Not)
    asked: Any = pushed.child if isinstance(pushed, sd.Not) else pushed
    operators = _operators().get(type(asked))
    if operators is None:
        return
    operator = operators[is_negated]
    values = _values(asked)
    if operator is Operator.IN:
        values = [value for value in values if value is not None]
    if any(map(_is_beyond, values)):
        return
    name, *members = asked.attribute
    attribute = (table.names.get(name, name), *members)
    try:
        if any(attribute[0] in found for found in table.folders):
            condition = _of_folders(attribute[0], name, operator, values, table)
        else:
            spark = _member(table.spark, asked.attribute)
            if spark != _member(table.own, attribute):
                # Another type may have another order: 9 is less than 10, '9' is not less than '10'.
                return
            condition = _of_files(attribute, spark, operator, values, table)
        yield structure(condition)
    except (PolicyError, pa.ArrowException, LookupError, TypeError, ValueError, OverflowError):
        # The table has no such column, or its type no such value: leave the filter to Spark.
        return


def _values(asked: Any) -> list[Any]:
    if isinstance(asked, sd.In):
        return list(asked.value)
    return [asked.value] if hasattr(asked, "value") else []


def _is_beyond(value: Any) -> bool:
    """Return whether Spark compares values with this one in another way than this package does."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _member(schema: pa.Schema, attribute: Sequence[str]) -> pa.DataType:
    """Return the type of a column, or of a member of structures.

    Raises ValueError if it is missing.
    """
    found: pa.DataType = pa.struct(list(schema))
    for name in attribute:
        index = found.get_field_index(name) if pa.types.is_struct(found) else -1
        if index < 0:
            raise ValueError
        found = found.field(index).type
    return found


def _of_files(
    attribute: tuple[str, ...],
    spark: pa.DataType,
    operator: Operator,
    values: list[Any],
    table: QueriedTable,
) -> Condition:
    name = ".".join(attribute)
    column = bind(Condition(column=name, operator=Operator.IS_NULL), table.stored)
    if not isinstance(column, BoundCondition) or column.path != attribute:
        raise PolicyError("another column has that name", column=name)
    scalars = tuple(_scalar(value, spark).cast(column.type) for value in values)
    condition = Condition(column=name, operator=operator, values=scalars)
    bind(condition, table.stored)
    return condition


def _scalar(value: Any, wanted: pa.DataType) -> pa.Scalar:
    """Return the value in Spark's type. Raises ValueError if that would be another value."""
    scalar = pa.scalar(value, wanted)
    if scalar.as_py() != value:
        raise ValueError
    return scalar


def _of_folders(
    name: str, spark: str, operator: Operator, values: list[Any], table: QueriedTable
) -> Condition:
    """Return the filter as a condition ``IN`` on the folder texts for which the filter is true.

    All texts of the partition column are known. A test for null is returned unchanged.
    """
    wanted = table.spark.field(spark).type
    scalars = tuple(_scalar(value, wanted) for value in values)
    # A member of a structure may have the same dotted name.
    path = (name,) if "." in name else None
    condition = Condition(column=name, operator=operator, values=scalars, path=path)
    if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
        return condition
    texts = list({found[name]: None for found in table.folders if found.get(name) is not None})
    typed = pa.table({name: folder_values(name, texts, wanted)})
    true = true_rows(bind(condition, typed.schema), typed).to_pylist()
    found = tuple(text for text, is_true in zip(texts, true, strict=True) if is_true)
    return Condition(column=name, operator=Operator.IN, values=found, path=path)
