"""The fields of a table's schemas: their names by id, their Arrow types, and their default values.

A file keeps the data of a column under its field id, whatever the column's name is, and the columns
that the table had when the file was written. :class:`TableColumns` has the columns of all schemas.
Paths of columns are written as in Parquet: ``tags.list.element``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import FormatError
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, Path, StoredName

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.lakes.iceberg.deletes import KeyColumn


def names_of_structure(structure: Any) -> ColumnMapping:
    """Return the names of the fields of a structure, by their ids."""
    members: dict[StoredName, NamedField] = {
        column.field_id: NamedField(name=column.name, inside=_inside(column.field_type))
        for column in structure.fields
    }
    return ColumnMapping(members=members)


def _inside(kind: Any) -> ColumnMapping | None:
    if kind.is_struct:
        return names_of_structure(kind)
    inner = tuple(_inside(held.field_type) for held in _held(kind))
    return ColumnMapping(inner=inner) if any(inner) else None


def _held(kind: Any) -> list[Any]:
    """Return the fields inside a list or a map."""
    names = ("element_field", "key_field", "value_field")
    return [getattr(kind, name) for name in names if hasattr(kind, name)]


def dotted_names(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield the dotted names of columns, and of the members of structures."""
    import pyarrow as pa

    for each in fields:
        yield above + each.name
        if pa.types.is_struct(each.type):
            yield from dotted_names(each.type, f"{above}{each.name}.")


@lru_cache(maxsize=1024)
def arrow_of(kind: Any) -> pa.DataType:
    """Return the Arrow type in which a column of an Iceberg type is decoded."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField

    found = Schema(NestedField(1, "c", kind, required=False)).as_arrow().field(0).type
    return getattr(found, "storage_type", found)


def _scalar(value: Any, kind: Any) -> pa.Scalar:
    """Return a value of the metadata in the Arrow type of a column."""
    import pyarrow as pa

    wanted = arrow_of(kind)
    if isinstance(value, int) and pa.types.is_temporal(wanted):
        # Days, microseconds or nanoseconds after 1970 or midnight.
        stored = pa.int32() if wanted.bit_width == 32 else pa.int64()
        return pa.scalar(value, stored).cast(wanted)
    if hasattr(value, "bytes"):
        value = value.bytes
    return pa.scalar(value, wanted)


def default_values(schema: Any) -> dict[str, pa.Scalar]:
    """Return the values that columns have in files that lack them, by name. Nulls are left out."""
    return {
        column.name: _scalar(column.initial_default, column.field_type)
        for column in schema.fields
        if column.initial_default is not None
    }


def partition_values(table: Any, schema: Any, file: Any) -> dict[str, pa.Scalar]:
    """Return the values of partition columns, because imported files may lack these columns."""
    found = {}
    for position, part in enumerate(table.specs()[file.spec_id].fields):
        column = schema._lazy_id_to_field.get(part.source_id)
        value = file.partition[position]
        if str(part.transform) == "identity" and column in schema.fields and value is not None:
            found[column.name] = _scalar(value, column.field_type)
    return found


def nested_default(schema: Any) -> str | None:
    """Return why a schema is refused if a field inside a column has a default value, or None."""
    for column in schema.fields:
        kind = column.field_type
        if any(map(_has_default, kind.fields if kind.is_struct else _held(kind))):
            return f"a part of column {column.name} has a default value for files that lack it"
    return None


def _has_default(column: Any) -> bool:
    if column.initial_default is not None:
        return True
    kind = column.field_type
    return any(map(_has_default, kind.fields if kind.is_struct else _held(kind)))


def key_columns(table: Any) -> Callable[[int], KeyColumn]:
    """Return a function that finds a column of equality deletes by its id, in any schema."""
    import pyarrow as pa

    from secure_bloom.lakes.iceberg.deletes import KeyColumn

    schemas = [table.schema(), *sorted(table.schemas().values(), key=lambda it: -it.schema_id)]

    @cache
    def find(field_id: int) -> KeyColumn:
        for schema in schemas:
            column = schema._lazy_id_to_field.get(field_id)
            if column is None:
                continue
            if not column.field_type.is_primitive:
                break
            kind, default = arrow_of(column.field_type), column.initial_default
            return KeyColumn(
                field_id=field_id,
                path=(*_ids_above(schema, field_id), field_id),
                type=kind,
                default=pa.scalar(None, kind)
                if default is None
                else _scalar(default, column.field_type),
            )
        raise FormatError(f"equality deletes use a field {field_id} that is not a column")

    return find


def _ids_above(schema: Any, field_id: int) -> tuple[int, ...]:
    parent = schema._lazy_id_to_parent.get(field_id)
    return () if parent is None else (*_ids_above(schema, parent), parent)


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, by their ids.

    ``current`` has their paths in the current schema.  ``dropped`` has, for each id that the
    current schema lacks, the paths in older schemas.
    """

    current: Mapping[int, Path]
    dropped: Mapping[int, Collection[Path]] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: Any) -> TableColumns:
        """Return the columns of all schemas that a table's metadata has."""
        current = _paths(metadata.schema())
        dropped: dict[int, dict[Path, None]] = {}
        for schema in sorted(metadata.schemas, key=lambda it: it.schema_id):
            for number, path in _paths(schema).items():
                if number not in current:
                    dropped.setdefault(number, {})[path] = None
        return cls(current, dropped)

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all columns."""
        return frozenset((*self.current, *self.dropped))

    def has(self, name: str) -> bool:
        """Return whether the table has a column, or had it before it was dropped."""
        return any(
            ".".join(path[:levels]) == name
            for path in (*self.current.values(), *chain.from_iterable(self.dropped.values()))
            for levels in range(1, len(path) + 1)
        )

    def secret(self, is_secret: Callable[[Path], bool]) -> frozenset[int]:
        """Return the ids of secret columns. For a dropped column, each older name counts."""
        found = {number for number, path in self.current.items() if is_secret(path)}
        old = {number for number, paths in self.dropped.items() if any(map(is_secret, paths))}
        return frozenset(found | old)

    def name(self, number: int) -> str:
        """Return the dotted name of a column, the last one if the column was dropped."""
        path = self.current.get(number) or [*self.dropped[number]][-1]
        return ".".join(path)


def _paths(schema: Any) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for number, above, levels in _fields(schema.as_struct()):
        found[number] = (*(() if above is None else found[above]), *levels)
    return found


def _fields(kind: Any, above: int | None = None) -> Iterator[tuple[int, int | None, Path]]:
    """Yield the id of each field, the id of the field that holds it, and its levels in Parquet."""
    for number, levels, inner in _parts(kind):
        yield number, above, levels
        yield from _fields(inner, number)


def _parts(kind: Any) -> Iterator[tuple[int, Path, Any]]:
    if kind.is_struct:
        for each in kind.fields:
            yield each.field_id, (each.name,), each.field_type
    elif hasattr(kind, "element_id"):
        yield kind.element_id, ("list", "element"), kind.element_type
    elif hasattr(kind, "key_id"):
        yield kind.key_id, ("key_value", "key"), kind.key_type
        yield kind.value_id, ("key_value", "value"), kind.value_type
