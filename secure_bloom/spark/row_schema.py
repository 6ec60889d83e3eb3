"""Columns of a DataFrame that tasks make: their types in Spark, and rows as Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

# Workers need none of it, and it takes a tenth of a second to load.
if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN: Mapping[str, Callable[[Any], object]] = {
    "array<string>": lambda texts: list(map(str, texts)),
    "binary": bytes,
    "boolean": bool,
    "double": float,
    "int": int,
    "long": int,
    "string": str,
}


@dataclass(frozen=True, slots=True)
class RowSchema:
    """Names of columns and their Spark types."""

    types: Mapping[str, str]

    @property
    def ddl(self) -> str:
        """The schema in the form that Spark takes."""
        return ", ".join(f"{name} {of}" for name, of in self.types.items())

    @property
    def struct(self) -> str:
        """The type of one row in Spark's form."""
        return f"struct<{', '.join(f'{name}: {of}' for name, of in self.types.items())}>"

    @property
    def arrow(self) -> pa.Schema:
        """The schema as an Arrow schema."""
        import pyarrow as pa

        arrow = {
            "array<string>": pa.list_(pa.string()),
            "binary": pa.binary(),
            "boolean": pa.bool_(),
            "double": pa.float64(),
            "int": pa.int32(),
            "long": pa.int64(),
            "string": pa.string(),
        }
        return pa.schema([(name, arrow[of]) for name, of in self.types.items()])

    def row(self, values: Mapping[str, object]) -> tuple[object, ...]:
        """Return one row. A column without a value is null."""
        return tuple(map(values.get, self.types))

    def plain(self, row: Sequence[object]) -> tuple[object, ...]:
        """Return one row in plain Python types, as a task gives it to the JVM.

        The JVM reads an int in a column of doubles as null, and knows no enumerations.
        """
        return tuple(
            None if value is None else _PLAIN[of](value)
            for value, of in zip(row, self.types.values(), strict=True)
        )

    def table(self, rows: Iterable[Sequence[object]]) -> pa.Table:
        """Return the rows as a table."""
        import pyarrow as pa

        columns = list(zip(*rows, strict=True)) or [()] * len(self.types)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, self.arrow, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=self.arrow)
