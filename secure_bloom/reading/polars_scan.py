"""An open table as a Polars LazyFrame, through Polars' public plugin for sources of rows.

Columns, the number of rows and the parts of a predicate that have the same meaning here are pushed
down.  Polars' own predicate is applied to the rows once more, so the answer is always Polars' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from secure_bloom.errors import MissingExtraError, PolicyError
from secure_bloom.predicates.from_polars import from_polars
from secure_bloom.predicates.tree import AllOf, Condition, Predicate, leaves
from secure_bloom.reading.read_request import Question

if TYPE_CHECKING:
    import polars as pl

    from secure_bloom.reading.kept_table import Table
    from secure_bloom.reading.table_read import TableRead


def scan(table: Table) -> pl.LazyFrame:
    """Return the rows of a table as a LazyFrame. Raises MissingExtraError without Polars."""
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as exc:
        raise MissingExtraError(
            "scan_polars() needs Polars", hint="pip install 'polars>=1.20'"
        ) from exc
    schema = table.schema

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        read = _asked(table, schema, columns, predicate, rows)
        for batch in read.batches():
            frame = pl.DataFrame(pa.Table.from_batches([batch]))
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if columns is None else frame.select(columns)
            frame = frame if left is None else frame.head(left)
            left = None if left is None else left - frame.height
            yield frame
            if left == 0:
                return

    shown = pl.DataFrame(schema.empty_table()).schema
    return register_io_source(source, schema=shown)


def _asked(
    table: Table,
    schema: pa.Schema,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
) -> TableRead:
    names = columns
    if columns is not None and predicate is not None:
        names = list(dict.fromkeys([*columns, *predicate.meta.root_names()]))
    # Polars asks for no column at all where it only counts rows.
    names = names or (None if names is None else schema.names[:1])
    found = None if predicate is None else _pushed(predicate, schema)
    limit = rows if predicate is None else None
    try:
        return table.ask(Question(found, columns=names, limit=limit))
    except PolicyError:
        if found is None:
            raise
        # A value of another type than the column's: Polars casts one of them.
        return table.ask(Question(columns=names, limit=limit))


def _pushed(predicate: pl.Expr, schema: pa.Schema) -> Predicate | None:
    """Return what a predicate says that means the same here, or None.

    Rows for which the predicate is true are among those for which the result is true.
    """
    try:
        found = from_polars(predicate)
    except PolicyError:
        parts = [part for it in _joined_by_and(predicate) if (part := _pushed(it, schema))]
        return AllOf(parts=tuple(parts)) if parts else None
    return found if all(_means_the_same(it, schema) for it in leaves(found)) else None


def _joined_by_and(predicate: pl.Expr) -> list[pl.Expr]:
    content = json.loads(predicate.meta.serialize(format="json"))
    is_and = isinstance(content, dict) and content.get("BinaryExpr", {}).get("op") == "And"
    return predicate.meta.pop() if is_and else []


def _means_the_same(condition: Condition, schema: pa.Schema) -> bool:
    """Return whether no value is rounded: Polars rounds numbers to the type of a FLOAT column."""
    name = condition.path[0] if condition.path else condition.column
    return name in schema.names and not pa.types.is_floating(schema.field(name).type)
