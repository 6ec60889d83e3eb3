"""Convert rows of files into Arrow batches in the schema that Spark wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from secure_bloom.errors import FormatError, located
from secure_bloom.reading.table.hive_partitions import Values
from secure_bloom.spark.partition_types import folder_values
from secure_bloom.spark.readable_types import check_type

#: The most rows and bytes of a batch: the JVM holds batches outside its heap.
_ROWS, _BYTES = 32 * 1024, 32 * 1024 * 1024


def conformed(
    batch: pa.RecordBatch,
    schema: pa.Schema,
    names: Mapping[str, str],
    folders: Values,
    path: str,
) -> pa.RecordBatch:
    """Return the batch of the file at ``path``, in ``schema``.

    ``names`` maps the schema's names to the file's.  A column of ``folders`` has one value.  A
    column that neither has is null.  Raises PolicyError for a type that cannot be read as the
    wanted type, FormatError for a value that the wanted type cannot hold.
    """
    columns = []
    for field in schema:
        name = names.get(field.name, field.name)
        with located(path=path, column=name):
            if name in batch.schema.names:
                columns.append(_cast(batch.column(name), field.type, name))
            elif name in folders:
                value = folder_values(name, [folders[name]], field.type)[0]
                columns.append(_repeated(value, batch.num_rows))
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in parts that are small enough for the JVM."""
    if not batch.num_rows:
        return
    rows = min(_ROWS, max(1, _BYTES * batch.num_rows // max(batch.nbytes, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _repeated(value: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def _cast(column: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type == wanted:
        return column
    check_type(column.type, wanted, name)
    try:
        return column.cast(wanted)
    except pa.ArrowException:
        # The cause is left out: its text may quote a value.
        raise FormatError(f"a value of the column is none of {wanted}, the type wanted") from None
