"""The columns of all schemas of a table, by their ids: which are secret, and which were dropped.

    email                      a column of the current schema
    email (not in the table)   how a file shows one that was dropped after the file was written

A data file keeps the columns that the table had when the file was written, and is opened with the
names of the current schema.  Paths are those of Parquet: ``tags.list.element``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from secure_bloom.storage.column_mapping import ColumnMapping, NamedField

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table, by their ids.

    ``current`` has their paths in the current schema.  ``dropped`` has, for each id that the
    current schema lacks, the paths in older schemas, each with the path that a file shows.
    """

    current: Mapping[int, Path]
    dropped: Mapping[int, Mapping[Path, Path]] = field(default_factory=dict)

    @classmethod
    def of(cls, metadata: Any) -> TableColumns:
        """Return the columns of all schemas that a table's metadata has."""
        current: dict[int, Path] = {}
        names: dict[int | None, dict[str | int, NamedField]] = defaultdict(dict)
        for number, above, levels in _fields(metadata.schema().as_struct()):
            current[number] = (*_path(current, above), *levels)
            names[above][number] = NamedField(name=levels[-1])
        dropped: dict[int, dict[Path, Path]] = {}
        for schema in sorted(metadata.schemas, key=lambda it: it.schema_id):
            old: dict[int, Path] = {}
            shown = dict(current)
            for number, above, levels in _fields(schema.as_struct()):
                old[number] = (*_path(old, above), *levels)
                if number in current:
                    continue
                is_below = above is not None and above not in current
                # As `parquet.schema` names it when the file is opened.
                beside = ColumnMapping(members=names[above])
                name = levels[-1] if is_below else beside.unused(levels[-1])
                shown[number] = (*_path(shown, above), *levels[:-1], name)
                dropped.setdefault(number, {})[old[number]] = shown[number]
        return cls(current, dropped)

    def has(self, name: str) -> bool:
        """Return whether the table has a column, or had it before it was dropped."""
        return any(
            ".".join(path[:levels]) == name
            for path in (*self.current.values(), *self.old_paths())
            for levels in range(1, len(path) + 1)
        )

    def old_paths(self) -> dict[Path, Path]:
        """Return the paths of dropped columns, each with the path that a file shows."""
        return {old: shown for paths in self.dropped.values() for old, shown in paths.items()}

    def secret(self, is_secret: Callable[[Path], bool]) -> frozenset[int]:
        """Return the ids of secret columns. Of a dropped column, each older name counts."""
        found = {number for number, path in self.current.items() if is_secret(path)}
        old = {number for number, paths in self.dropped.items() if any(map(is_secret, paths))}
        return frozenset(found | old)

    def name(self, number: int) -> str:
        """Return the dotted name of a column: the current one, or the last one of a dropped one."""
        path = self.current.get(number) or [*self.dropped[number]][-1]
        return ".".join(path)


def _path(paths: Mapping[int, Path], number: int | None) -> Path:
    return () if number is None else paths[number]


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
