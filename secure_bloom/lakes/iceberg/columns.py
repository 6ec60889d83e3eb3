"""The columns of all schemas of a table, by their ids: which are secret, and which were dropped.

A data file keeps the columns that the table had when the file was written. The paths of columns are
written as in Parquet: ``tags.list.element``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from secure_bloom.storage.column_mapping import Path


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
