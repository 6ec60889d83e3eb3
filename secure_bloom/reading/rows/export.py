"""Write rows as Parquet or Arrow IPC, or convert them to Python values."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.texts import temporal_text
from secure_bloom.reading.table.type_promotion import with_leaves


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: BinaryIO) -> int:
    """Write the batches to an open file, in clear. Return the number of rows."""
    try:
        writer = pq.ParquetWriter(file, schema)
    except pa.ArrowNotImplementedError:
        refused = list(filter(_is_refused, schema))
        raise UnsupportedFeatureError(
            "a file of Parquet has no column of this type: "
            + ", ".join(f"{it.name} {_SQL_TYPES.get(it.type, it.type)}" for it in refused),
            hint="give it another type in the query: " + " or ".join(_casts(refused[0])),
        ) from None
    with writer:
        return _written(writer, batches)


#: Types of a query's answer that a file of Parquet lacks, as SQL names them.
_SQL_TYPES = {pa.month_day_nano_interval(): "INTERVAL"}


def _casts(field: pa.Field) -> list[str]:
    found = [f"cast({field.name} as varchar)"]
    return [*found, f"epoch_us({field.name})"] if field.type in _SQL_TYPES else found


def _is_refused(field: pa.Field) -> bool:
    try:
        pq.ParquetWriter(io.BytesIO(), pa.schema([field])).close()
    except pa.ArrowNotImplementedError:
        return True
    return False


def write_arrow(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], file: BinaryIO, *, as_stream: bool
) -> int:
    """Write the batches as an Arrow IPC file, or as a stream. Return the number of rows.

    A file has one dictionary a column, to which batches may only add values (Arrow Columnar
    Format, IPC File Format).  So in a file, columns of dictionaries have the type of their values.
    """
    if as_stream:
        with pa.ipc.new_stream(file, schema) as writer:
            return _written(writer, batches)
    plain = pa.schema(
        [it.with_type(with_leaves(it.type, _value_type)) for it in schema], schema.metadata
    )
    with pa.ipc.new_file(file, plain) as writer:
        return _written(writer, batches if plain == schema else (it.cast(plain) for it in batches))


def _value_type(of: pa.DataType) -> pa.DataType:
    return of.value_type if pa.types.is_dictionary(of) else of


def _written(writer: Any, batches: Iterable[pa.RecordBatch]) -> int:
    count = 0
    for batch in batches:
        writer.write_batch(batch)
        count += batch.num_rows
    return count


def with_unique_names(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the rows with every column under a name of its own: ``a``, ``a_1``, as DuckDB does."""
    names: list[str] = []
    for name in reader.schema.names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        names.append(next(it for it in itertools.chain([name], numbered) if it not in names))
    if names == reader.schema.names:
        return reader
    fields = zip(names, reader.schema, strict=True)
    schema = pa.schema([field.with_name(name) for name, field in fields])
    batches = (pa.RecordBatch.from_arrays(it.columns, schema=schema) for it in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def python_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows as Python values. Dates and times that Python cannot represent become texts.

    Python cannot represent nanoseconds, or years outside 1 to 9999.
    """
    names = batch.schema.names
    columns = [python_values(name, batch.column(i)) for i, name in enumerate(names)]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def python_values(name: str, column: pa.Array) -> list[Any]:
    """Return the values of a column.

    Raises FormatError for a text that is not UTF-8, which many writers do not check.
    """
    try:
        return _values(column)
    except UnicodeDecodeError:
        # The cause is left out: its text quotes the bytes.
        raise FormatError(
            "a value of the column is not UTF-8, as its type says",
            hint="--format parquet, and read_table in Python, take such values as they are",
            column=name,
        ) from None


def _values(column: pa.Array) -> list[Any]:
    if not _has_nanoseconds(column.type):
        try:
            values: list[Any] = column.to_pylist()
        except UnicodeDecodeError:
            raise
        except (ValueError, OverflowError):
            pass
        else:
            return values
    return [_value(scalar) for scalar in column]


def _has_nanoseconds(of: pa.DataType) -> bool:
    if pa.types.is_dictionary(of):
        return _has_nanoseconds(of.value_type)
    if pa.types.is_temporal(of):
        return getattr(of, "unit", None) == "ns"
    return any(_has_nanoseconds(of.field(i).type) for i in range(of.num_fields))


def _value(scalar: pa.Scalar) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.DictionaryScalar):
        return _value(scalar.value)
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(member) for name, member in scalar.items()}
    if isinstance(scalar, pa.MapScalar):
        return [tuple(_value(entry).values()) for entry in scalar.values]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values]
    return _text(scalar) if _has_nanoseconds(scalar.type) else _short(scalar)


def _short(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        raise
    except (ValueError, OverflowError):
        return _text(scalar)


def _text(scalar: pa.Scalar) -> str:
    return temporal_text(scalar) or str(scalar)
