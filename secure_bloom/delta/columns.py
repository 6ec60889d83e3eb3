"""Translate names of columns: logical names of the table, and physical names of its files.

With column mapping, PROTOCOL.md, each field of the schema has a physical name of its own.  Names of
nested columns are dotted paths, as everywhere here: ``address.zip``, ``tags.list.element``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.tables import TableMetadata

Field = Mapping[str, Any]
Name = Callable[[Field], str]

_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """The names of one table's columns. ``is_mapped`` says that the files have other names."""

    fields: Sequence[Field]
    partition_columns: tuple[str, ...]
    is_mapped: bool

    @classmethod
    def of(cls, metadata: TableMetadata) -> ColumnNames:
        """Return the names of the columns of a table with this metadata."""
        return cls(
            fields=metadata.schema["fields"],
            partition_columns=metadata.partition_columns,
            is_mapped=metadata.column_mapping_mode != "none",
        )

    def require(self, name: str) -> None:
        """Raise PolicyError for a column that no file of the table can have."""
        if name in self.partition_columns:
            raise PolicyError(
                f"{name} is a partition column: its values are in the table's log, not in files",
                hint="leave it out: readers skip whole files by it and need no filter",
            )
        if _translated(self.fields, name, _logical_name, _physical_name) is None:
            raise unknown_column(name, (field["name"] for field in self.fields))

    def stored(self, name: str) -> str:
        """Return the name that files have for a column.

        Raises PolicyError for an unknown column.
        """
        if not self.is_mapped:
            return name
        found = _translated(self.fields, name, _logical_name, _physical_name)
        if found is None:
            raise unknown_column(name, (field["name"] for field in self.fields))
        return found

    def logical(self, name: str) -> str:
        """Return the table's name of a column of a file."""
        if not self.is_mapped:
            return name
        return _translated(self.fields, name, _physical_name, _logical_name) or name

    def has_field(self, name: str) -> bool:
        """Return whether a dotted path is a field of the table, not a level of a list or a map."""
        return _is_field(self.fields, name)


def _logical_name(field: Field) -> str:
    return str(field["name"])


def _physical_name(field: Field) -> str:
    metadata = field.get("metadata") or {}
    # A field that says no physical name has its own name in files.
    return str(metadata.get(_PHYSICAL, field["name"]))


def _is_field(fields: Sequence[Field], path: str) -> bool:
    """Return whether a dotted path is a field.

    Below lists and maps, a path has the levels of the Parquet file too.
    """
    return any(
        path == field["name"]
        or (
            path.startswith(f"{field['name']}.")
            and isinstance(field["type"], Mapping)
            and _is_field(field["type"].get("fields", ()), path[len(field["name"]) + 1 :])
        )
        for field in fields
    )


def _translated(fields: Sequence[Field], path: str, old: Name, new: Name) -> str | None:
    """Return a dotted path with other names, or None if no field has it."""
    for field in fields:
        name = old(field)
        # A name may hold dots itself, so each field is compared whole before its parts are looked
        # at.
        if path == name:
            return new(field)
        if path.startswith(f"{name}."):
            below = _below(field["type"], path[len(name) + 1 :], old, new)
            if below is not None:
                return f"{new(field)}.{below}"
    return None


def _below(kind: Any, path: str, old: Name, new: Name) -> str | None:
    """Return the rest of a path, below a field of this type, with other names."""
    if not isinstance(kind, Mapping):
        return None
    if kind["type"] == "struct":
        return _translated(kind["fields"], path, old, new)
    # Two levels of the file format that no field of the schema names: list.element and the like.
    group, _, rest = path.partition(".")
    level, _, rest = rest.partition(".")
    inner = kind.get("elementType") or kind["keyType" if level == "key" else "valueType"]
    if not rest:
        return path
    below = _below(inner, rest, old, new)
    return None if below is None else f"{group}.{level}.{below}"
