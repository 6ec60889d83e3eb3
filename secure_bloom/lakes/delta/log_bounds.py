"""Bounds of columns in the statistics that a Delta log has for a file.

    "stats": "{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":3}, ...}"

PROTOCOL.md, "Per-file Statistics". The log is never encrypted, even if the data files are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from secure_bloom.errors import FormatError
from secure_bloom.lakes.delta.actions import PHYSICAL_NAME
from secure_bloom.running.bounded_documents import parsed_json

#: Whether a column is of these, by its path under the names that people use.
IsSecret = Callable[[tuple[str, ...]], bool]

_BOUNDS = ("minValues", "maxValues")
#: Structures are not nested so deeply; a hostile log would exhaust Python's stack.
_DEEPEST = 100


def bounded_columns(add: Mapping[str, Any], schema: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Return the columns with a bound in an `add` action, by the table's names.

    A checkpoint may have bounds as columns (``stats_parsed``), with or without the text.
    """
    columns = add.get("stats_parsed")
    found = _parsed(add.get("stats")), columns if isinstance(columns, dict) else {}
    return {
        path
        for statistics in found
        for name in _BOUNDS
        for path in _leaves(statistics.get(name), schema, (), _DEEPEST)
    }


def named_path(path: tuple[str, ...], schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a column's path by the names of the table, given its path by the names of the log.

    ``schema`` is one schema of the table. A name that the schema does not have is left unchanged.
    """
    kind: object = schema
    named: tuple[str, ...] = ()
    for stored in path:
        field = _fields(kind).get(stored, {})
        named, kind = (*named, str(field.get("name", stored))), field.get("type")
    return named


def stored_path(path: tuple[str, ...], schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a column's path by the names of the log, given its path by the names of the table.

    This is the inverse of :func:`named_path`. It ignores case, as engines do.
    """
    kind: object = schema
    found: tuple[str, ...] = ()
    for name in path:
        named = (
            (stored, field.get("type"))
            for stored, field in _fields(kind).items()
            if str(field.get("name")).casefold() == name.casefold()
        )
        stored, kind = next(named, (name, None))
        found = (*found, stored)
    return found


def fields_inside(
    kind: object, above: tuple[str, ...] = (), depth: int = _DEEPEST
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the path and the metadata of each field of a structure, and of the fields inside."""
    for field in _fields(kind).values() if depth else ():
        path, said = (*above, str(field.get("name"))), field.get("metadata")
        yield path, said if isinstance(said, Mapping) else {}
        yield from fields_inside(field.get("type"), path, depth - 1)


def without_bounds(
    add: Mapping[str, Any], schema: Mapping[str, Any], is_secret: IsSecret
) -> str | None:
    """Return the statistics of an `add` action without the bounds of secret columns."""
    text: str | None = add.get("stats")
    if not any(map(is_secret, bounded_columns(add, schema))):
        return text
    statistics = _parsed(text)
    for name in _BOUNDS:
        if isinstance(statistics.get(name), dict):
            statistics[name] = _public_bounds(statistics[name], schema, (), is_secret)
    return _encoded(statistics)


class _Number(str):
    """A number as the log writes it. A float would round a decimal, and so change the bound."""

    __slots__ = ()


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        found = (
            parsed_json(text, "statistics", parse_float=_Number, parse_int=_Number) if text else {}
        )
    except (ValueError, RecursionError, TypeError):
        # The text is left out: it may quote values.
        raise FormatError("the statistics of a file in the log are no JSON") from None
    return found if isinstance(found, dict) else {}


def _encoded(value: Any) -> str:
    # The number as the log has it, digit by digit.
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        parts = (f"{json.dumps(k, ensure_ascii=False)}:{_encoded(v)}" for k, v in value.items())
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_encoded, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _leaves(
    values: object, kind: object, above: tuple[str, ...], depth: int
) -> Iterator[tuple[str, ...]]:
    if not isinstance(values, dict) or depth == 0:
        return
    for _, path, value, inner in _named_values(values, kind, above):
        if isinstance(value, dict):
            yield from _leaves(value, inner, path, depth - 1)
        elif value is not None:
            yield path


def _public_bounds(
    values: Mapping[str, Any], kind: object, above: tuple[str, ...], is_secret: IsSecret
) -> dict[str, Any]:
    """Return the bounds of columns that are not secret.

    Bounds that are nested too deep to be checked are left out.
    """
    kept: dict[str, Any] = {}
    for stored, path, value, inner in _named_values(values, kind, above):
        if not isinstance(value, dict):
            kept |= {} if is_secret(path) else {stored: value}
        elif len(path) < _DEEPEST:
            kept[stored] = _public_bounds(value, inner, path, is_secret)
    return kept


def _named_values(
    values: Mapping[str, Any], kind: object, above: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], Any, object]]:
    """Yield each value with its physical path, its path in the table, and its type."""
    fields = _fields(kind)
    for stored, value in values.items():
        field = fields.get(stored, {})
        yield stored, (*above, str(field.get("name", stored))), value, field.get("type")


def _fields(kind: object) -> Mapping[str, Mapping[str, Any]]:
    """Return the fields of a structure in the table's schema, by their names in statistics."""
    fields = kind.get("fields") if isinstance(kind, Mapping) else None
    named = [field for field in fields or () if isinstance(field, Mapping)]
    return {
        str((field.get("metadata") or {}).get(PHYSICAL_NAME, field.get("name"))): field
        for field in named
    }
