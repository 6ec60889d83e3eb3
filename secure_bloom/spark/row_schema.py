"""Columns of a DataFrame that tasks make: their types for Spark, and rows as Arrow batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

_ARROW = {
    "array<string>": pa.list_(pa.string()),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "double": pa.float64(),
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
}


@dataclass(frozen=True, slots=True)
class RowSchema:
    """Names of columns and their Spark types."""

    types: Mapping[str, str]

    @property
    def ddl(self) -> str:
        """The schema as Spark takes it."""
        return ", ".join(f"{name} {of}" for name, of in self.types.items())

    @property
    def struct(self) -> str:
        """One row as a type of Spark's."""
        return f"struct<{', '.join(f'{name}: {of}' for name, of in self.types.items())}>"

    @property
    def arrow(self) -> pa.Schema:
        """The schema as Arrow has it."""
        return pa.schema([(name, _ARROW[of]) for name, of in self.types.items()])

    def row(self, values: Mapping[str, object]) -> tuple[object, ...]:
        """Return one row; a column without a value is null."""
        return tuple(map(values.get, self.types))

    def table(self, rows: Iterable[Sequence[object]]) -> pa.Table:
        """Return the rows as a table."""
        columns = list(zip(*rows, strict=True)) or [()] * len(self.types)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, self.arrow, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.arrow)

    def lists(self, rows: Sequence[Sequence[Sequence[object]]]) -> pa.Array:
        """Lists of rows, as an array of lists of structures."""
        table = self.table(row for some in rows for row in some)
        columns = [column.combine_chunks() for column in table.columns]
        structures = pa.StructArray.from_arrays(columns, fields=list(self.arrow))
        ends = itertools.accumulate(map(len, rows), initial=0)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structures)
