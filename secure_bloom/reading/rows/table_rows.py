"""Convert decoded columns of a file into rows in the schema of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from secure_bloom.errors import FormatError
from secure_bloom.lakes.hive_partitions import partition_scalar
from secure_bloom.predicates.bound_request import Request
from secure_bloom.reading.pruning.plan import FilePlan
from secure_bloom.reading.rows.column_decoder import Columns


def with_read_columns(plan: FilePlan, request: Request, whole: Sequence[str] = ()) -> FilePlan:
    """Return the plan of a file whose footer has only the members that the request reads.

    The columns ``whole`` keep all members.
    """
    columns = request.reads(plan.footer.columns, whole)
    if columns is plan.footer.columns:
        return plan
    return replace(plan, footer=plan.footer.with_columns(columns))


def conformed(
    plan: FilePlan, request: Request, columns: Columns, count: int, schema: pa.Schema
) -> pa.Table:
    """Return the columns in the types of ``schema``. Columns that the file lacks are filled in."""
    arrays = [_column(plan, request, field, columns.get(field.name), count) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(
    plan: FilePlan, request: Request, field: pa.Field, column: pa.ChunkedArray | None, count: int
) -> pa.ChunkedArray | pa.Array:
    if field.name in request.partitions:
        value = partition_scalar(field, plan.partition)
        return pa.repeat(value, count) if value.is_valid else pa.nulls(count, field.type)
    if column is None:
        is_hidden = field.name in request.hidden.columns
        value = None if is_hidden else plan.fills.get(field.name)
        filled = pa.nulls(count) if value is None else pa.repeat(value, count)
        return filled.cast(field.type)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise FormatError(
            f"a value does not fit {field.type}, the column's type in the table",
            column=field.name,
        ) from None
