"""Convert rows for Polars or DuckDB: types that the library lacks are replaced by other types.

    lent = Lent.to_duckdb(schema, intervals)
    lent.schema                 the columns as they are handed over
    lent.rows(batch)            the rows of a batch in these types

A column without a possible replacement is in the schema as a column of nulls, so that other columns
can be read.  :meth:`Lent.check` refuses a read of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from secure_bloom.errors import UnsupportedFeatureError

#: The most digits of a decimal in Polars.
_MOST_DIGITS: Final = 38
#: A zone that is an offset and no name, which Polars does not have.
_OFFSET: Final = re.compile(r"[+-]\d\d:?\d\d")
#: An INTERVAL of Parquet has three little-endian numbers.  LogicalTypes.md, "INTERVAL".
INTERVAL_PARTS: Final = ("months", "days", "milliseconds")
_INTERVAL: Final = pa.struct([(name, pa.uint32()) for name in INTERVAL_PARTS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """The columns of a table in the types of another library.

    ``lacking`` has, for each column that the library cannot have, what it lacks.
    """

    schema: pa.Schema
    lacking: dict[str, str]

    @classmethod
    def to_polars(cls, schema: pa.Schema) -> Lent:
        """Return the columns as Polars gets them."""
        return cls._of(schema, "Polars", _for_polars)

    @classmethod
    def to_duckdb(cls, schema: pa.Schema, intervals: Collection[str] = ()) -> Lent:
        """Return the columns as DuckDB gets them through Polars.

        ``intervals`` are columns whose type in Parquet is INTERVAL. Each interval is passed as its
        three numbers.
        """
        lent = cls._of(schema, "SQL (DuckDB)", lambda kind: _for_duckdb(_for_polars(kind)))
        fields = [it.with_type(_INTERVAL) if it.name in intervals else it for it in lent.schema]
        return cls(schema=pa.schema(fields, schema.metadata), lacking=lent.lacking)

    @classmethod
    def _of(
        cls, schema: pa.Schema, library: str, replaced: Callable[[pa.DataType], pa.DataType]
    ) -> Lent:
        lacking = {field.name: what for field in schema if (what := _lacking(field.type, library))}
        fields = [
            it.with_type(pa.null() if it.name in lacking else _with_leaves(it.type, replaced))
            for it in schema
        ]
        return cls(schema=pa.schema(fields, schema.metadata), lacking=lacking)

    def check(self, names: Iterable[str] | None) -> None:
        """Raise UnsupportedFeatureError if the library lacks a type for one of these columns.

        None means all columns.
        """
        for name in self.lacking if names is None else names:
            if name in self.lacking:
                raise UnsupportedFeatureError(
                    f"column {name} has {self.lacking[name]}",
                    hint="leave it out, or read it with read_table or secure-bloom read",
                )

    def rows(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the rows of a batch. Raises UnsupportedFeatureError for a value that is lost."""
        # The fields have what only their metadata says, such as the categories of an Enum.
        fields = [self.schema.field(name) for name in batch.schema.names]
        columns = map(self._column, batch.schema, batch.columns)
        return pa.Table.from_arrays(list(columns), schema=pa.schema(fields))

    def _column(self, field: pa.Field, column: pa.Array) -> pa.Array:
        kind = self.schema.field(field.name).type
        if kind == field.type:
            return column
        if kind == _INTERVAL:
            return _interval_parts(column)
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            # The cause is left out: its text quotes the value.
            raise UnsupportedFeatureError(
                f"column {field.name} has durations with nanoseconds, and an INTERVAL has none",
                hint="leave it out, or read it with read_table or secure-bloom read",
            ) from None


def _with_leaves(kind: pa.DataType, replaced: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type in which ``replaced`` was applied to each type that is not nested."""

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_with_leaves(field.type, replaced))

    if pa.types.is_struct(kind):
        return pa.struct([inner(it) for it in kind])
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return replaced(pa.list_(inner(kind.value_field), kind.list_size))
    if pa.types.is_large_list(kind):
        return pa.large_list(inner(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(inner(kind.value_field))
    return replaced(kind)


def _lacking(kind: pa.DataType, library: str) -> str | None:
    """Return what Polars has no type for, in ``kind`` or inside it. None if it has all types.

    The text names ``library``, which gets its rows through Polars.
    """
    if pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS:
        return f"decimals of more than {_MOST_DIGITS} digits, {library} has fewer"
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return f"lists of Arrow's type list_view, which {library} lacks"
    parts = (_lacking(kind.field(number).type, library) for number in range(kind.num_fields))
    return next(filter(None, parts), None)


def _for_polars(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal256(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and _OFFSET.fullmatch(kind.tz or ""):
        return pa.timestamp(kind.unit, "UTC")
    return kind


def _for_duckdb(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field)
    return kind


def _interval_parts(column: pa.Array) -> pa.Array:
    content = column.buffers()[1].slice(12 * column.offset, 12 * len(column))
    numbers = np.frombuffer(content, "<u4").reshape(-1, len(INTERVAL_PARTS))
    parts = [pa.array(np.ascontiguousarray(it)) for it in numbers.T]
    return pa.StructArray.from_arrays(parts, fields=list(_INTERVAL), mask=column.is_null())
