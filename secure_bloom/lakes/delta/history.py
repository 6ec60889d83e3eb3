"""Read all files in a Delta log, of any version: commits, checkpoints, checksums.

A snapshot is made from few files of the log.  The others stay until the log is cleaned up, and
anyone can read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import FormatError, SecureBloomError, located
from secure_bloom.lakes.delta.actions import (
    Action,
    column_names,
    fields_of,
    json_lines,
    metadata_of,
)
from secure_bloom.lakes.delta.checkpoint import read_log_file
from secure_bloom.lakes.delta.live_file import TableMetadata
from secure_bloom.lakes.delta.log_files import LOG_FOLDER
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import join, name_of
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.dispatch import tree_of

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns of checkpoints and sidecar files.
ACTION_NAMES = frozenset(
    {
        *("txn", "add", "remove", "metaData", "protocol", "domainMetadata", "cdc", "commitInfo"),
        *("checkpointMetadata", "sidecar"),
    }
)
_LOG_NAMES = re.compile(
    r".*\.json|\d{20}\.crc|_last_checkpoint|\..*\.crc|\d+(\.compact)?|.*\.avro|version-hint\.text"
)
_BATCH_ROWS = 1_000


def is_read_as_log(name: str) -> bool:
    """Return whether a file has one of the names that files of a log have."""
    return _LOG_NAMES.fullmatch(name) is not None


def log_paths(table: str) -> Iterator[str]:
    """Yield the paths of all files in a table's log."""
    tree = tree_of(table)
    log = join(table, LOG_FOLDER)
    for folder, _, names in tree.walk(log, []):
        for name in names:
            yield tree.join(folder, name)


def actions_in(path: str) -> Iterator[Action]:
    """Yield the actions in one file of a log, or none if the file has another form.

    Raises FormatError for a file that cannot be read.
    """
    name = name_of(path)
    with located(path=path):
        if re.fullmatch(r"\d{20}\.crc", name):
            yield from _checksum_actions(path)
        elif name.endswith(".json"):
            yield from json_lines(read_log_file(path), _decoded())
        elif name.endswith(".parquet"):
            yield from _checkpoint_actions(path)


def metadata_in_log(table: str) -> Iterator[TableMetadata]:
    """Yield the table's metadata in all versions that its log still has.

    Equal metadata are yielded once. Files of the log that cannot be read are left out: reading the
    table reports them.
    """
    seen: set[str] = set()
    for path in log_paths(table):
        with suppress(SecureBloomError):
            for action in actions_in(path):
                fields = fields_of(action, "metaData")
                schema = None if fields is None else fields.get("schemaString")
                if fields is not None and isinstance(schema, str) and schema not in seen:
                    seen.add(schema)
                    yield metadata_of(fields)


def older_names(table: str) -> list[ColumnMapping]:
    """Return the names of columns in the schemas of all versions that the log still has."""
    found: list[ColumnMapping] = []
    for metadata in metadata_in_log(table):
        # A schema that cannot be read must not hide the names of the others.
        with suppress(SecureBloomError):
            names = column_names(metadata)
            found += [] if names is None else [names]
    return found


def stray_actions(path: str) -> Iterator[Action]:
    """Yield the actions in a file that looks like a commit or a checkpoint but is not in a log.

    Raises FormatError for a file of any other form.
    """
    with located(path=path):
        content = read_log_file(path)
        is_parquet = content.endswith(b"PAR1")
        yield from _checkpoint_actions(path) if is_parquet else json_lines(content, _decoded())


def _checksum_actions(path: str) -> Iterator[Action]:
    """Yield the actions that the checksum file of a version repeats."""
    try:
        content = parsed_json(read_log_file(path), "the checksum file of a version")
    except (ValueError, RecursionError):
        raise FormatError("the checksum file of a version is not JSON") from None
    if isinstance(content, dict):
        yield from ({"add": add} for add in content.get("allFiles") or () if isinstance(add, dict))
        yield {"metaData": content.get("metadata") or {}}


def _checkpoint_actions(path: str) -> Iterator[Action]:
    from secure_bloom.parquet.metadata_rows import metadata_rows

    def columns(schema: pa.Schema) -> list[str] | None:
        # A copy of something else has a check of its own.
        return schema.names if ACTION_NAMES.issuperset(schema.names) else None

    content = read_log_file(path)
    for batch in metadata_rows(path, content, _decoded(), columns, most_rows=_BATCH_ROWS):
        try:
            # Lossy: of two equal keys of a map either one shows that there is a value.
            rows = batch.to_pylist(maps_as_pydicts="lossy")
        except ValueError as exc:
            # Without the text, which may quote values.
            raise FormatError("a checkpoint of the log cannot be read") from exc
        for row in rows:
            yield {name: fields for name, fields in row.items() if fields is not None}


def _decoded() -> DecodedBytes:
    # Of each file alone: nothing of it is kept.
    return DecodedBytes("a file of the log")


def texts_of(action: Action) -> Iterator[tuple[str, str]]:
    """Yield the texts in an action that may contain conditions, each with its description.

    Parameters that only list names of columns are left out. A JSON object such as ``{"email":
    "x"}`` is yielded as the condition ``email = ''``: its value may be secret.
    """
    info = _mapping(action.get("commitInfo"))
    for name, value in _mapping(info.get("operationParameters")).items():
        if (info.get("operation"), name) not in _NAMES_ONLY:
            yield from ((f"the operation's {name}", text) for text in _conditions(value, _DEEPEST))
    metadata = _mapping(action.get("metaData"))
    for name, value in _mapping(metadata.get("configuration")).items():
        if name.startswith("delta.constraints."):
            yield "a constraint", str(value)


#: Operations, and parameters of them that have settings of columns: none of their values.
_NAMES_ONLY = frozenset({("ADD BLOOM FILTERS", "columns")})
#: Objects in parameters are not nested so deeply; a hostile log would exhaust Python's stack.
_DEEPEST = 20


def _conditions(value: object, depth: int) -> Iterator[str]:
    """Yield the texts in a parameter. Engines write lists and objects as JSON texts."""
    if isinstance(value, str):
        inner = _json(value) if depth else None
        if inner is None:
            yield value
            return
        value = inner
    if isinstance(value, list) and depth:
        for each in value:
            yield from _conditions(each, depth - 1)
    # The description of a column, by its name and type, has no value of it.
    elif isinstance(value, dict) and depth and not value.keys() >= {"name", "type"}:
        for name, each in value.items():
            if each is not None and not isinstance(each, dict | list):
                yield f"`{name}` = ''"
            yield from _conditions(each, depth - 1)
    elif not isinstance(value, list | dict):
        yield json.dumps(value)


def _json(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the list or the object that a text of JSON holds, or None for another text."""
    try:
        found = parsed_json(text, "a parameter of an operation")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list | dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
