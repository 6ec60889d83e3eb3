"""Read the schemas of a Paimon table: ``schema/schema-N``, one JSON document for each version.

Each field has an id, by which a column keeps its identity through renames.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from secure_bloom.errors import (
    FormatError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.lakes.paimon.names import SCHEMA_FOLDER
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.storage import join, open_input
from secure_bloom.storage.dispatch import tree_of

#: The newest version of the format of schemas and of snapshots that is read here.
NEWEST: Final = 3
#: The most levels of a type.
DEEPEST: Final = 100
_TYPE = re.compile(
    r"([A-Z_]+)(?:\((\d{1,10})(?:, ?(\d{1,3}))?\))?(?: NOT NULL| WITH LOCAL TIME ZONE)*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtomicType:
    """A type without fields: its name, and its length, or its precision and scale."""

    root: str
    length: int | None = None
    scale: int = 0

    @property
    def precision(self) -> int:
        """The precision of a time, which is 6 by default."""
        return 6 if self.length is None else self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonField:
    """A column, or a field inside one: its id, its name, and its type as the schema has it."""

    id: int
    name: str
    type: Any
    has_default: bool = False

    @property
    def atomic(self) -> AtomicType | None:
        """The type of a column without fields, or None."""
        found = _TYPE.fullmatch(self.type) if isinstance(self.type, str) else None
        if found is None:
            return None
        root, length, scale = found.groups()
        if "LOCAL TIME ZONE" in self.type:
            root = "TIMESTAMP_LTZ"
        return AtomicType(
            root=root, length=None if length is None else int(length), scale=int(scale or 0)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSchema:
    """One version of a table's columns, keys and options."""

    id: int
    fields: tuple[PaimonField, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)

    def named(self, name: str) -> PaimonField | None:
        """Return the column of this name, or None."""
        return next((each for each in self.fields if each.name == name), None)

    def with_id(self, field_id: int) -> PaimonField | None:
        """Return the column with this id, or None."""
        return next((each for each in self.fields if each.id == field_id), None)

    def is_on(self, option: str) -> bool:
        """Return whether an option of the table is ``true``."""
        return self.options.get(option, "").strip().lower() == "true"


def read_schema(folder: str, number: int) -> PaimonSchema:
    """Return a version of the schema of the table in ``folder``."""
    path = join(join(folder, SCHEMA_FOLDER), f"schema-{number}")
    document = read_json(path)
    with located(path=path):
        found = _schema(document)
        if found.id != number:
            raise FormatError(f"the schema says that it is number {found.id}")
        return found


def read_json(path: str) -> dict[str, Any]:
    """Return the object in a metadata file of the table, if its version is supported.

    Raises UnsupportedFeatureError for another version.
    """
    with located(path=path), open_input(path) as file:
        try:
            found = parsed_json(file.all_bytes(), "a file of the table's metadata")
        except (ValueError, RecursionError):
            raise FormatError("the metadata of a Paimon table are not JSON") from None
        if not isinstance(found, dict):
            raise FormatError("the metadata of a Paimon table are not a JSON object")
        version = number_in(found, "version", 1)
        if version > NEWEST:
            raise UnsupportedFeatureError(
                f"a Paimon table of format version {version}, at most {NEWEST} is read",
                hint="use a newer version of secure-bloom",
            )
        return found


def number_in(document: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a number that is not negative. Raises FormatError for anything else."""
    found = document.get(name, default)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**63:
        raise FormatError(f"{name} is not a whole number, or is negative")
    return found


def _schema(document: Mapping[str, Any]) -> PaimonSchema:
    fields = document.get("fields")
    if not isinstance(fields, list):
        raise FormatError("the schema has no list of fields")
    options = document.get("options") or {}
    if not isinstance(options, dict) or not all(isinstance(v, str) for v in options.values()):
        raise FormatError("the options of the schema are not texts")
    return PaimonSchema(
        id=number_in(document, "id"),
        fields=tuple(map(_field, fields)),
        partition_keys=_names(document, "partitionKeys"),
        primary_keys=_names(document, "primaryKeys"),
        options=options,
    )


def _field(document: object) -> PaimonField:
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise FormatError("a field of the schema has no name")
    return PaimonField(
        id=number_in(document, "id"),
        name=document["name"],
        type=document.get("type"),
        has_default=document.get("defaultValue") is not None,
    )


def fields_in(kind: Any) -> tuple[PaimonField, ...]:
    """Return the fields of a structure. Other types have none."""
    fields = kind.get("fields") if isinstance(kind, dict) else None
    return tuple(map(_field, fields)) if isinstance(fields, list) else ()


def held_types(kind: Any) -> tuple[Any, ...]:
    """Return the type of the elements of a list, or the types of a map's keys and values."""
    parts = ("element", "key", "value") if isinstance(kind, dict) else ()
    return tuple(kind[part] for part in parts if part in kind)


def every_field(fields: Iterable[PaimonField], depth: int = DEEPEST) -> Iterator[PaimonField]:
    """Yield the fields, and all fields inside them. Raises FormatError if they nest too deep."""
    for each in fields:
        yield each
        yield from _inside(each.type, depth - 1)


def _inside(kind: Any, depth: int) -> Iterator[PaimonField]:
    if depth < 0:
        raise FormatError(f"the table's schema nests deeper than {DEEPEST} levels")
    yield from every_field(fields_in(kind), depth)
    for held in held_types(kind):
        yield from _inside(held, depth - 1)


def _names(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = document.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise FormatError(f"{name} is not a list of names")
    return tuple(found)


class SchemaReader:
    """The schemas of a table. Each is read once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[int, PaimonSchema] = {}

    def latest(self) -> int:
        """Return the number of the newest schema."""
        found = self._numbers()
        if not found:
            raise FormatError("the table has no schema")
        return max(found)

    def every(self) -> list[PaimonSchema]:
        """Return all schemas that can be read, the oldest first."""
        found = []
        for number in sorted(self._numbers()):
            with suppress(SecureBloomError):
                found.append(self.get(number))
        return found

    def _numbers(self) -> list[int]:
        names = tree_of(self._folder).names(join(self._folder, SCHEMA_FOLDER))
        numbers = [name.removeprefix("schema-") for name in names if name.startswith("schema-")]
        return [int(number) for number in numbers if number.isascii() and number.isdigit()]

    def get(self, number: int) -> PaimonSchema:
        """Return a schema by its number."""
        if number not in self._known:
            self._known[number] = read_schema(self._folder, number)
        return self._known[number]
