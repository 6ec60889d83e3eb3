"""Column mapping of a Delta table: the names of its columns in its files.

    "metadata": {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-a7f4159c"}

In mode ``name`` a file has physical names, in mode ``id`` it has field ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from secure_bloom.errors import FormatError
from secure_bloom.lakes.delta.actions import PHYSICAL_NAME, count, fields_of, text
from secure_bloom.lakes.delta.live_file import TableMetadata
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, StoredName

#: Schemas of tables are not so deep; a hostile one would exhaust Python's stack.
_DEEPEST = 100


def column_names(metadata: TableMetadata) -> ColumnMapping | None:
    """Return the mapping from the table's names to its files', or None without column mapping."""
    return None if metadata.column_mapping_mode == "none" else all_columns(metadata)


def all_columns(metadata: TableMetadata) -> ColumnMapping:
    """Return the mapping of all columns. Without column mapping, files have the table's names."""
    return _members_of(metadata.schema, metadata.column_mapping_mode, _DEEPEST)


def _members_of(kind: Mapping[str, Any], mode: str, depth: int) -> ColumnMapping:
    members: dict[StoredName, NamedField] = {}
    for column in kind.get("fields") or ():
        if not isinstance(column, dict):
            raise FormatError("a field of the table's schema is not an object")
        stored = _stored_name(column, mode)
        # One column of a file under two names: a condition on either would rule out by the other's
        # values.
        if stored in members and mode != "none":
            raise FormatError(
                "two columns of the table's schema have the same name or id in its files"
            )
        members[stored] = NamedField(
            name=text(column, "name"),
            inside=_inside(column.get("type"), mode, depth - 1),
            physical_name=_physical_name(column) if mode == "id" else None,
        )
    return ColumnMapping(members=members)


def _stored_name(column: Mapping[str, Any], mode: str) -> StoredName:
    if mode == "none":
        return text(column, "name")
    metadata = fields_of(dict(column), "metadata") or {}
    return count(metadata, _ID) if mode == "id" else text(metadata, PHYSICAL_NAME)


def _physical_name(column: Mapping[str, Any]) -> str:
    # A field that says no physical name has its own name in files.
    return str((column.get("metadata") or {}).get(PHYSICAL_NAME, column["name"]))


def _inside(kind: object, mode: str, depth: int) -> ColumnMapping | None:
    """Return the names inside a type, or None for a type without fields."""
    if depth < 0:
        raise FormatError(f"the table's schema nests deeper than {_DEEPEST} levels")
    if not isinstance(kind, dict):
        return None
    if kind.get("type") == "struct":
        return _members_of(kind, mode, depth)
    held = _HELD.get(str(kind.get("type")), ())
    return ColumnMapping(inner=tuple(_inside(kind.get(name), mode, depth - 1) for name in held))


_ID = "delta.columnMapping.id"
_HELD = {"array": ("elementType",), "map": ("keyType", "valueType")}
