"""Map a table's names of columns to the names or ids that its files have.

With Delta's column mapping, a file has physical names or field ids, and the table's log says which
column each one is.  Names of nested columns are dotted paths, as everywhere here: ``address.zip``,
``tags.list.element``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

#: The name of a field in a file: its physical name, or its id.
StoredName = str | int
#: The parts of a column's name.
Path: TypeAlias = tuple[str, ...]
#: The end of the name that a file shows for a column that the table has no more.
_DROPPED = " (not in the table)"
#: Parquet's levels of a list and of a map, by the number of types inside and the place of one.
_LEVELS = (
    (1, 0, ("list", "element")),
    (2, 0, ("key_value", "key")),
    (2, 1, ("key_value", "value")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """The names of the fields of a structure, and of the fields inside them.

    ``members`` maps what a file calls a field to the field.  ``inner`` is the mapping of a list's
    element, or of a map's key and value. It is None for a type without fields.
    """

    members: Mapping[StoredName, NamedField] = field(default_factory=dict)
    inner: Sequence[ColumnMapping | None] = ()

    @property
    def are_ids(self) -> bool:
        """Whether fields are found by their ids alone."""
        return bool(self.members) and all(isinstance(name, int) for name in self.members)

    def find(self, name: str, field_id: int | None) -> NamedField | None:
        """Return the field that a file calls by this name or id."""
        found = self.members.get(name)
        return found if found or field_id is None else self.members.get(field_id)

    def unused(self, name: str) -> str:
        """Return a name for a field that is no longer in the table.

        No field of the table has it.
        """
        taken = {member.name for member in self.members.values()}
        shown = f"{name}{_DROPPED}"
        while shown in taken:
            shown += "'"
        return shown

    def shown(self, path: Path) -> Path:
        """Return the path that files show for one in the table's log, also of a dropped column."""
        for member in self.members.values() if path else ():
            if member.name == path[0]:
                inside = member.inside or ColumnMapping()
                return (path[0], *(inside.shown(path[1:]) if inside.members else path[1:]))
        return (self.unused(path[0]), *path[1:]) if path else ()

    def stored(self, path: str) -> str | None:
        """Return the path that files have for a column, or None if the table has no such column."""
        return _translated(self, path, lambda shown, stored: (shown, stored))

    def logical(self, path: str) -> str:
        """Return the table's path of a column of a file. An unknown path is returned as it is."""
        return _translated(self, path, lambda shown, stored: (stored, shown)) or path

    def has_field(self, path: str) -> bool:
        """Return whether a path is a field of the table, not a level of a list or a map."""
        return any(
            path == member.name
            or (
                path.startswith(f"{member.name}.")
                and member.inside is not None
                and member.inside.has_field(path[len(member.name) + 1 :])
            )
            for member in self.members.values()
        )

    def paths(self) -> list[tuple[str, ...]]:
        """Return the paths of the table's columns, without lists, maps and what is inside them."""
        return [
            (member.name, *path)
            for member in self.members.values()
            for path in ([()] if member.inside is None else member.inside.paths())
        ]

    def pairs(self) -> Iterator[tuple[str, str, ColumnMapping | None]]:
        """Yield the name of each field in the table and in files, and what is inside the field."""
        for stored, member in self.members.items():
            yield member.name, member.physical_name or str(stored), member.inside


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedField:
    """A field's name in the table, and the mapping of the fields inside it.

    ``physical_name`` is the name that files give to a field that is found by its id.
    """

    name: str
    inside: ColumnMapping | None = None
    physical_name: str | None = None


@dataclass(frozen=True, slots=True)
class OlderColumn:
    """A column that was dropped or renamed: its path in an older schema, and in files now."""

    path: Path = ()
    shown: Path = ()

    def with_levels(self, path: Path, shown: Path) -> OlderColumn:
        """Return a column inside this one."""
        return OlderColumn(self.path + path, self.shown + shown)


def older_columns(current: ColumnMapping, older: Iterable[ColumnMapping]) -> list[OlderColumn]:
    """Return the columns that older schemas of a table call otherwise than files show them now.

    A column comes before those inside it.
    """
    found = (it for each in older for it in _older(current, each, OlderColumn()))
    return [it for it in dict.fromkeys(found) if it.path != it.shown]


def is_dropped(path: Sequence[str]) -> bool:
    """Return whether a file shows a column by this path because its table has it no more."""
    return any(part.rstrip("'").endswith(_DROPPED) for part in path)


def _older(
    now: ColumnMapping | None, then: ColumnMapping | None, above: OlderColumn
) -> Iterator[OlderColumn]:
    """Yield the columns inside one, which has no name inside if ``then`` is None.

    ``now`` is None if the table has dropped it.
    """
    members, inner = (then.members, then.inner) if then else ({}, ())
    for stored, member in members.items():
        found = None if now is None else now.members.get(stored)
        # A file whose fields are found by their ids calls a column as the table did.
        own = stored if isinstance(stored, str) else member.physical_name or member.name
        shown = found.name if found else own if now is None else now.unused(own)
        column = above.with_levels((member.name,), (shown,))
        yield column
        held = None if found is None else found.inside or ColumnMapping()
        yield from _older(held, member.inside, column)
    for count, position, levels in _LEVELS if above.path and not members else ():
        if len(inner) in (0, count):
            column = above.with_levels(levels, levels)
            yield column
            if inner:
                held = now.inner[position] if now and len(now.inner) == count else now
                yield from _older(held, inner[position], column)


#: Of a field's names in the table and in files, the one to look for, and the one to return.
_Direction: TypeAlias = Callable[[str, str], tuple[str, str]]


def _translated(fields: ColumnMapping, path: str, direction: _Direction) -> str | None:
    """Return a dotted path with other names, or None if no field has it."""
    for shown, stored, inside in fields.pairs():
        old, new = direction(shown, stored)
        # A name may hold dots itself, so each field is compared whole before its parts are looked
        # at.
        if path == old:
            return new
        if path.startswith(f"{old}."):
            below = _below(inside, path[len(old) + 1 :], direction)
            if below is not None:
                return f"{new}.{below}"
    return None


def _below(inside: ColumnMapping | None, path: str, direction: _Direction) -> str | None:
    """Return the rest of a path, below a field, with other names."""
    if inside is None:
        return None
    if not inside.inner:
        return _translated(inside, path, direction)
    # Two levels of the file format that no field of the schema names: list.element and the like.
    group, _, rest = path.partition(".")
    level, _, rest = rest.partition(".")
    if not rest:
        return path
    below = _below(inside.inner[0 if level == "key" else -1], rest, direction)
    return None if below is None else f"{group}.{level}.{below}"
