"""Convert rows of files into Arrow batches in the schema that Spark wants.

The caller's schema may have other types than the files.  A pair of types is accepted if every value
keeps its meaning.  These are the pairs of Spark's own reader, and the pairs that the union of files
needs.  Spark's pairs that only show the stored number are left out (a DATE as INT, a DECIMAL
without its scale).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type

from secure_bloom.errors import FormatError, PolicyError, located
from secure_bloom.lakes.hive_partitions import Values, folder_values
from secure_bloom.reading.table.type_promotion import plain_type

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

    ``names`` maps the schema's names to the file's. ``folders`` has the values of partition
    columns, each of which is the same in all rows. A column that is in neither the file nor
    ``folders`` is null. Raises PolicyError for a type that cannot be read as the wanted type,
    FormatError for a value that the wanted type cannot hold.
    """
    columns, stored = [], frozenset(batch.schema.names)
    for field in schema:
        name = names.get(field.name, field.name)
        with located(path=path, column=name):
            if name in stored:
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
        raise FormatError(f"a value does not fit {wanted}, the column's wanted type") from None


def check_types(stored: pa.Schema, schema: pa.Schema, names: Mapping[str, str]) -> None:
    """Raise PolicyError for a column whose stored type cannot be read as its type in ``schema``."""
    in_file = frozenset(stored.names)
    for field in schema:
        name = names.get(field.name, field.name)
        if name in in_file:
            check_type(stored.field(name).type, field.type, name)


def check_type(stored: pa.DataType, wanted: pa.DataType, name: str) -> None:
    """Raise PolicyError for a column whose stored type cannot be read as the wanted one."""
    stored = plain_type(stored)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        for member in wanted:
            _check_member(stored, member, f"{name}.{member.name}")
        return
    inner = next((parts for is_both, parts in _INNER if is_both(stored) and is_both(wanted)), None)
    if inner is not None:
        for one, other in zip(inner(stored), inner(wanted), strict=True):
            check_type(one, other, name)
        return
    if not _is_readable(stored, wanted):
        raise PolicyError(
            f"it is {_in_spark(stored)} in the files, which is not read as {_in_spark(wanted)}",
            hint="leave .schema(...) out, or give the files' type there, and CAST what was read",
            column=name,
        )


def _check_member(stored: pa.DataType, member: pa.Field, name: str) -> None:
    """Raise PolicyError for a member whose name differs from the file's in case only.

    Members are found by their exact names. A member that the files lack is null.
    """
    if stored.get_field_index(member.name) >= 0:
        check_type(stored.field(member.name).type, member.type, name)
        return
    alike = [field.name for field in stored if field.name.lower() == member.name.lower()]
    if alike:
        raise PolicyError(
            f"its name in the files is {alike[0]}",
            hint="use that name in .schema(...)",
            column=name,
        )


def _is_list(of: pa.DataType) -> bool:
    return pa.types.is_nested(of) and not (pa.types.is_struct(of) or pa.types.is_map(of))


_INNER: list[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], tuple[pa.DataType, ...]]]
] = [
    (pa.types.is_map, lambda of: (of.key_type, of.item_type)),
    (_is_list, lambda of: (of.value_type,)),
]


def _is_readable(stored: pa.DataType, wanted: pa.DataType) -> bool:
    return any(one(stored) and other(wanted) for one, other in _READABLE) or _has_digits(
        stored, wanted
    )


def _has_digits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a decimal type holds all numbers of an integer or another decimal type."""
    if not pa.types.is_decimal(wanted):
        return False
    if pa.types.is_integer(stored):
        # Spark's own numbers: an INT32 may have 10 digits, and an INT64 20.
        return bool(wanted.precision - wanted.scale >= (10 if _is_int32(stored) else 20))
    return pa.types.is_decimal(stored) and bool(
        wanted.scale >= stored.scale
        and wanted.precision - wanted.scale >= stored.precision - stored.scale
    )


def _is_int32(of: pa.DataType) -> bool:
    """Return whether Parquet stores the integers of a type as INT32."""
    return bool(pa.types.is_integer(of) and of.bit_width <= 32)


def _is_float(of: pa.DataType) -> bool:
    return bool(pa.types.is_float16(of) or pa.types.is_float32(of))


def _is_bytes(of: pa.DataType) -> bool:
    """Return whether the values of a type are bytes or text of any length."""
    return any(check(of) for check in _OF_BYTES)


_OF_BYTES = [
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
]


def _is_local(of: pa.DataType) -> bool:
    return pa.types.is_timestamp(of) and of.tz is None


def _is_counted(of: pa.DataType) -> bool:
    """Return whether a type has timestamps in milli- or microseconds, as in the file."""
    return pa.types.is_timestamp(of) and of.unit in ("ms", "us")


def _is_any(_: pa.DataType) -> bool:
    return True


#: Stored type, wanted type.  Values that may not fit are checked one by one.
_READABLE: list[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]]] = [
    (pa.types.is_null, _is_any),
    (pa.types.is_boolean, pa.types.is_boolean),
    (_is_int32, pa.types.is_integer),
    (_is_int32, pa.types.is_float64),
    (pa.types.is_integer, pa.types.is_int64),
    # Intervals are stored as numbers, and only some writers say so.
    (pa.types.is_int64, pa.types.is_duration),
    (pa.types.is_duration, pa.types.is_int64),
    (pa.types.is_duration, pa.types.is_duration),
    (_is_float, pa.types.is_floating),
    (pa.types.is_float64, pa.types.is_float64),
    (_is_bytes, _is_bytes),
    (pa.types.is_fixed_size_binary, pa.types.is_binary),
    (pa.types.is_date, pa.types.is_date),
    (pa.types.is_date, _is_local),
    (pa.types.is_time, pa.types.is_time),
    # With a zone and without: an INT96 is an instant and comes without one.
    (pa.types.is_timestamp, pa.types.is_timestamp),
    (_is_counted, pa.types.is_int64),
]


def _in_spark(of: pa.DataType) -> str:
    """Return Spark's name of a type, or Arrow's if Spark has no such type."""
    try:
        return from_arrow_type(of, prefer_timestamp_ntz=True).simpleString()
    except (PySparkException, ValueError):
        return str(of)
