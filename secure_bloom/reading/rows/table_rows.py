"""Convert decoded columns of a file into rows in the schema of the table."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from secure_bloom.errors import FormatError
from secure_bloom.predicates.bound_request import Request
from secure_bloom.reading.pruning.plan import FilePlan
from secure_bloom.reading.rows.column_decoder import Columns
from secure_bloom.reading.table.hive_partitions import partition_scalar


def conformed(
    plan: FilePlan, request: Request, columns: Columns, count: int, names: Sequence[str]
) -> pa.Table:
    """Return the columns in the types of the table. Columns that the file lacks are filled in."""
    fields = [request.schema.field(name) for name in names]
    arrays = [_column(plan, request, field, columns.get(field.name), count) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _column(
    plan: FilePlan, request: Request, field: pa.Field, column: pa.ChunkedArray | None, count: int
) -> pa.ChunkedArray | pa.Array:
    if field.name in request.partitions:
        value = partition_scalar(field, plan.partition)
        return pa.repeat(value, count) if value.is_valid else pa.nulls(count, field.type)
    if column is None:
        value = plan.fills.get(field.name)
        filled = pa.nulls(count) if value is None else pa.repeat(value, count)
        return filled.cast(field.type)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException:
        raise FormatError(
            f"a value of the column is none of {field.type}, the type it has in the table",
            column=field.name,
        ) from None
