"""Find the columns about which schemas of other tools in a footer reveal more than Parquet's.

Arrow, pandas and Spark each store their own schema as a text.  The Parquet schema already has names
and types.  Metadata of a column reveals more: comments, categories, or anything else a program
stored.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from secure_bloom.errors import FormatError
from secure_bloom.parquet.arrow_schemas import check_arrow_texts
from secure_bloom.running.bounded_documents import parsed_json

#: Metadata that the tools add by themselves, and that the Parquet schema has too.
_HARMLESS_ARROW = (b"PARQUET:", b"ARROW:extension:")
_HARMLESS_PANDAS = {"timezone", "unit", "encoding", "precision", "scale"}
#: The types inside a type of Spark, and their paths in Parquet.
_SPARK_LEVELS = {
    "elementType": "list.element.",
    "keyType": "key_value.key.",
    "valueType": "key_value.value.",
    "sqlType": "",
}
_HARMLESS_SPARK = {"__CHAR_VARCHAR_TYPE_STRING"}
#: A longer text is not parsed.
_MOST_TEXT = 16 * 1024 * 1024
_MOST_DEPTH = 100
_WHAT = "a schema in the footer"


def columns_with_metadata(texts: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return, by tool, the columns that have metadata of their own in its schema.

    A text that is not a schema reveals nothing, because the tool would not understand it either.
    """
    found: dict[str, frozenset[str]] = {}
    for name, (writer, columns) in _SCHEMAS.items():
        text = texts.get(name, "")
        if text and len(text) <= _MOST_TEXT:
            found[writer] = found.get(writer, frozenset()) | frozenset(columns(text))
    return found


def has_attributes(texts: Mapping[str, str]) -> bool:
    """Return whether pandas stored attributes of the whole table, which may describe any column."""
    text = texts.get("pandas", "")
    return bool(text) and len(text) <= _MOST_TEXT and bool(_json(text).get("attributes"))


def texts_inside(text: bytes) -> list[bytes]:
    """Return the texts in a schema of Arrow or a JSON document, or nothing for any other text."""
    if len(text) > _MOST_TEXT:
        return []
    if text[:1] in (b"{", b"["):
        with suppress(ValueError, RecursionError):
            return [
                it.encode("utf-8", "surrogatepass") for it in _json_texts(parsed_json(text, _WHAT))
            ]
        return []
    schema = _arrow_schema(text)
    if schema is None:
        return []
    metadata = [schema.metadata, *(it.metadata for field in schema for _, it in _fields(field))]
    return [part for some in metadata for pair in (some or {}).items() for part in pair]


def _json_texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _json_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _json_texts(inner)
    else:
        yield str(value)


def _arrow_columns(text: str) -> Iterator[str]:
    schema = _arrow_schema(text)
    for field in () if schema is None else schema:
        for path, inner in _fields(field):
            if any(not key.startswith(_HARMLESS_ARROW) for key in inner.metadata or {}):
                yield path


def _arrow_schema(text: str | bytes) -> Any | None:
    """Return the Arrow schema in a text of Base64, or None."""
    # The beginning of the message that a schema is, as few texts have it.
    if text[:4] not in ("////", b"////"):
        return None
    # Imported here: few footers are readable, and few of those are Arrow's.
    import pyarrow as pa

    try:
        check_arrow_texts([text if isinstance(text, str) else text.decode("ascii", "replace")])
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text, validate=True)))
        # Names are decoded here, and may not be valid text.
        return schema if all(True for field in schema for _ in _fields(field)) else None
    except (ValueError, OSError, EOFError, RecursionError, FormatError, pa.ArrowException):
        return None


def _fields(field: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a field and all fields inside it, each with its dotted path."""
    path = f"{above}{field.name}"
    yield path, field
    for i in range(getattr(field.type, "num_fields", 0)):
        yield from _fields(field.type.field(i), f"{path}.")


def _pandas_columns(text: str) -> Iterator[str]:
    for column in _objects(_json(text).get("columns")):
        if not _says_nothing(column.get("metadata"), _HARMLESS_PANDAS):
            yield str(column.get("field_name") or column.get("name"))


def _spark_columns(text: str) -> Iterator[str]:
    yield from _spark_fields("", _json(text), _MOST_DEPTH)


def _spark_fields(path: str, struct: Mapping[str, Any], depth: int) -> Iterator[str]:
    for field in _objects(struct.get("fields")):
        name = f"{path}{field.get('name')}"
        if not _says_nothing(field.get("metadata"), _HARMLESS_SPARK):
            yield name
        yield from _spark_type(f"{name}.", field.get("type"), depth)
    for word, level in _SPARK_LEVELS.items():
        yield from _spark_type(f"{path}{level}", struct.get(word), depth)


def _spark_type(path: str, type_: object, depth: int) -> Iterator[str]:
    if isinstance(type_, dict) and depth:
        yield from _spark_fields(path, type_, depth - 1)


def _says_nothing(metadata: object, harmless: set[str]) -> bool:
    if isinstance(metadata, dict):
        return metadata.keys() <= harmless
    return metadata is None


def _json(text: str) -> dict[str, Any]:
    try:
        value = parsed_json(text, _WHAT)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


#: The key of each text in the footer -> the tool, and how to find the columns.
_SCHEMAS: dict[str, tuple[str, Callable[[str], Iterator[str]]]] = {
    "ARROW:schema": ("Arrow", _arrow_columns),
    "pandas": ("pandas", _pandas_columns),
    "org.apache.spark.sql.parquet.row.metadata": ("Spark", _spark_columns),
}
