"""Rows as they are read, in the Arrow schema in which Spark wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.errors import FormatError, located
from secure_bloom.reading.partitions import Values
from secure_bloom.spark.folders import folder_values

#: Rows and bytes of a batch at most: the JVM holds batches outside its heap.
_ROWS, _BYTES = 32 * 1024, 32 * 1024 * 1024


def conformed(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    names: Mapping[str, str],
    folders: Values,
    path: str,
) -> pa.RecordBatch:
    """``batch`` of the file at ``path`` in ``schema``, ``names`` leading to its columns.

    Columns of ``folders`` have one value; what neither has is null.  Raises FormatError for a value
    that the wanted type cannot hold.
    """
    columns = []
    for field in schema:
        name = names.get(field.name, field.name)
        with located(path=path, column=name):
            if name in folders:
                value = folder_values(name, [folders[name]], field.type)[0]
                columns.append(_repeated(value, batch.num_rows))
            elif name in batch.schema.names:
                columns.append(_cast(batch.column(name), field.type))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in parts that are not too large for the JVM."""
    if not batch.num_rows:
        return
    rows = min(_ROWS, max(1, _BYTES * batch.num_rows // max(batch.nbytes, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _repeated(value: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == wanted:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # As Spark does, which has no nanoseconds.
        column = pc.floor_temporal(column, unit="microsecond")
    try:
        return column.cast(wanted)
    except pa.ArrowException:
        # Without the cause: its text may quote a value.
        raise FormatError(f"a value of the column is none of {wanted}, the type wanted") from None
