"""A request to a table: its schema, the wanted columns, and the bound predicate."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.predicates.binding import BoundPredicate, bind, bound_conditions
from secure_bloom.predicates.tree import Predicate


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """The schema of the whole table, the output columns, and the predicate."""

    schema: pa.Schema
    partitions: tuple[str, ...]
    output: tuple[str, ...]
    predicate: BoundPredicate | None

    @property
    def filtered(self) -> tuple[str, ...]:
        """The top-level columns of the predicate."""
        found = (condition.path[0] for condition in bound_conditions(self.predicate))
        return tuple(dict.fromkeys(found))

    @property
    def needed(self) -> tuple[str, ...]:
        """The top-level columns that must be read from files."""
        names = dict.fromkeys((*self.filtered, *self.output))
        return tuple(name for name in names if name not in self.partitions)

    @functools.cached_property
    def output_schema(self) -> pa.Schema:
        """The schema of the result."""
        return pa.schema([self.schema.field(name) for name in self.output])

    @functools.cached_property
    def no_rows(self) -> pa.Table:
        """A result without rows.

        It is made once, because most row groups that are read have no match.
        """
        return self.output_schema.empty_table()


def whole_schema(
    schema: pa.Schema, partitions: Sequence[pa.Field], order: Sequence[str] = ()
) -> pa.Schema:
    """Return all columns of a table: partition columns last, unless ``order`` names all."""
    names = {field.name for field in partitions}
    whole = pa.schema([*(field for field in schema if field.name not in names), *partitions])
    return pa.schema([whole.field(name) for name in order]) if order else whole


def request(
    whole: pa.Schema,
    partitions: Sequence[pa.Field],
    columns: Sequence[str] | None,
    predicate: Predicate | None,
    paths: Sequence[str],
) -> Request:
    """Return the request to a table. Raises PolicyError for a column that the table lacks."""
    output = tuple(whole.names if columns is None else dict.fromkeys(columns))
    if not output:
        raise PolicyError("no column is asked for")
    # Once: a schema makes its list of names anew each time.
    names = whole.names
    known = frozenset(names)
    for name in output:
        if name not in known:
            raise unknown_column(name, names)
    return Request(
        schema=whole,
        partitions=tuple(field.name for field in partitions),
        output=output,
        predicate=None if predicate is None else bind(predicate, whole, paths),
    )
