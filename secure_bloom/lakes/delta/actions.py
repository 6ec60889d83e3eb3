"""Read the actions of a Delta log: parse lines, and check each field when it is read.

    {"add": {"path": ..., "size": ...}}
    {"remove": {"path": ...}}

With column mapping, the schema in an action has the names of the columns in the files:

    "metadata": {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-a7f4159c"}

In mode ``name`` a file has physical names, in mode ``id`` it has field ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from secure_bloom.errors import FormatError
from secure_bloom.lakes.delta.live_file import DeletionVector, Protocol, TableMetadata
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.running.memory_budget import DecodedBytes, json_size
from secure_bloom.storage.column_mapping import ColumnMapping, NamedField, StoredName

#: The name of a column in files or, in mode ``id``, in partition values and statistics alone
#: (PROTOCOL.md, "Column Mapping"): a field of the column's metadata.
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
#: One line of a commit: the action's name -> its fields.
Action = dict[str, Any]


def json_lines(data: bytes, decoded: DecodedBytes) -> Iterator[Action]:
    """Yield the actions of a commit, a compacted log file or a checkpoint in JSON.

    ``decoded`` counts the memory that the decoded actions take.
    """
    # Not splitlines, which also cuts at characters that JSON may have in a text.
    for number, line in enumerate(_lines(data), 1):
        if not line.strip():
            continue
        decoded.add(json_size(line))
        action = _parsed(line, f"line {number} of the log")
        if not isinstance(action, dict):
            raise FormatError(f"line {number} of the log is not a JSON object")
        yield action


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines one by one. A list of them could be huge: a log may have only empty lines."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1
    yield data[start:]


def _parsed(data: bytes, what: str) -> Any:
    try:
        # Decoded here: json takes half of a character for one in UTF-8 too.
        found = parsed_json(data.decode(), what)
        if b"\\u" in data:
            # Half of a character, which JSON can spell: no path and no value has one.
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:
        raise FormatError(f"{what} is not JSON") from exc
    return found


def fields_of(action: Action, name: str) -> Mapping[str, Any] | None:
    """Return the fields of an action of this name, or None for another action."""
    found = action.get(name)
    if found is not None and not isinstance(found, dict):
        raise FormatError(f"{name} is of type {type(found).__name__}, wanted an object")
    return found


def text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field. Raises FormatError unless it is a text."""
    found: str = _typed(fields, name, str)
    return found


def count(fields: Mapping[str, Any], name: str) -> int:
    """Return a field. Raises FormatError unless it is a whole number, not negative."""
    found: int = _typed(fields, name, int)
    # True is an int to Python.
    if isinstance(found, bool) or found < 0:
        raise FormatError(f"{name} is {found}, wanted a number from 0")
    return found


def optional_count(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a whole number as :func:`count` does, or None for a missing field or null."""
    return None if fields.get(name) is None else count(fields, name)


def texts(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return a field that is a list of texts, or [] if it is missing or null."""
    if fields.get(name) is None:
        return []
    found: list[str] = _typed(fields, name, list)
    if not all(isinstance(one, str) for one in found):
        raise FormatError(f"{name} has a value that is not a text")
    return found


def text_map(fields: Mapping[str, Any], name: str) -> dict[str, str | None]:
    """Return a field that maps texts to texts or null, or {} if it is missing or null."""
    if fields.get(name) is None:
        return {}
    found: dict[str, str | None] = _typed(fields, name, dict)
    if not all(one is None or isinstance(one, str) for one in found.values()):
        raise FormatError(f"{name} has a value that is neither a text nor null")
    return found


def _typed(fields: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    found = fields.get(name)
    if not isinstance(found, kind):
        raise FormatError(f"{name} is of type {type(found).__name__}, wanted {kind.__name__}")
    return found


def protocol_of(fields: Mapping[str, Any]) -> Protocol:
    """Return the protocol in a ``protocol`` action."""
    return Protocol(
        min_reader_version=count(fields, "minReaderVersion"),
        min_writer_version=count(fields, "minWriterVersion"),
        reader_features=frozenset(texts(fields, "readerFeatures")),
        writer_features=frozenset(texts(fields, "writerFeatures")),
    )


def deletion_vector_of(fields: Mapping[str, Any]) -> DeletionVector | None:
    """Return the deletion vector of an ``add`` or ``remove`` action."""
    found = fields_of(dict(fields), "deletionVector")
    if found is None:
        return None
    return DeletionVector(
        storage_type=text(found, "storageType"),
        path_or_inline_dv=text(found, "pathOrInlineDv"),
        offset=optional_count(found, "offset"),
        size_in_bytes=count(found, "sizeInBytes"),
        cardinality=count(found, "cardinality"),
    )


def metadata_of(fields: Mapping[str, Any]) -> TableMetadata:
    """Return the table's metadata in a ``metaData`` action."""
    schema_string = text(fields, "schemaString")
    schema = _schema(schema_string)
    configuration = {k: v for k, v in text_map(fields, "configuration").items() if v is not None}
    mode = configuration.get("delta.columnMapping.mode", "none")
    names = {text(column, "name"): _physical_name(column, mode) for column in schema["fields"]}
    partitions = tuple(texts(fields, "partitionColumns"))
    unknown = [name for name in partitions if name not in names]
    if unknown:
        raise FormatError(f"partition column {unknown[0]} is not a column of the schema")
    return TableMetadata(
        schema_string=schema_string,
        schema=schema,
        partition_columns=partitions,
        configuration=configuration,
        column_mapping_mode=mode,
        physical_names=names,
    )


def _schema(schema_string: str) -> dict[str, Any]:
    schema = _parsed(schema_string.encode(), "schemaString")
    columns = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(columns, list) or not all(isinstance(one, dict) for one in columns):
        raise FormatError("schemaString is not a structure of fields")
    found: dict[str, Any] = schema
    return found


def _physical_name(column: Mapping[str, Any], mode: str) -> str:
    # A later error names a mode that is not known.
    if mode not in ("name", "id"):
        return text(column, "name")
    # In mode id files are matched by field id, but partition values and statistics use this name in
    # both modes (PROTOCOL.md, "Column Mapping").
    metadata = fields_of(dict(column), "metadata") or {}
    return text(metadata, PHYSICAL_NAME)


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
            physical_name=_name_in_files(column) if mode == "id" else None,
        )
    return ColumnMapping(members=members)


def _stored_name(column: Mapping[str, Any], mode: str) -> StoredName:
    if mode == "none":
        return text(column, "name")
    metadata = fields_of(dict(column), "metadata") or {}
    return count(metadata, _ID) if mode == "id" else text(metadata, PHYSICAL_NAME)


def _name_in_files(column: Mapping[str, Any]) -> str:
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
