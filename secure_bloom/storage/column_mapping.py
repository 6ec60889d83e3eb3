"""Map a table's column names to the names or ids that its files have.

With Delta's column mapping, a file has physical names or field ids, and the table's log says which
column each one is.  Names of nested columns are dotted paths, as everywhere here: ``address.zip``,
``tags.list.element``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

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

    The keys of ``members`` are the names or ids of the fields in files.  ``inner`` has the mapping
    of a list's element, or of a map's key and value. An entry of ``inner`` is None for a type
    without fields.
    """

    members: Mapping[StoredName, NamedField] = field(default_factory=dict)
    inner: Sequence[ColumnMapping | None] = ()
    #: Made when they are first used: see :meth:`fields`.
    _fields: dict[bool, dict[str, list[_Field]]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def fields(self, *, in_files: bool) -> Mapping[str, Sequence[_Field]]:
        """Return the fields by their names in files, or by their names in the table."""
        if in_files not in self._fields:
            found: dict[str, list[_Field]] = {}
            for position, (stored, member) in enumerate(self.members.items()):
                own = member.physical_name or str(stored)
                old, new = (own, member.name) if in_files else (member.name, own)
                found.setdefault(old, []).append(_Field(position, new, member.inside))
            self._fields[in_files] = found
        return self._fields[in_files]

    @property
    def are_ids(self) -> bool:
        """Whether fields are found only by their ids."""
        return bool(self.members) and all(isinstance(name, int) for name in self.members)

    def find(self, name: str, field_id: int | None) -> NamedField | None:
        """Return the field that a file calls by this name or id."""
        found = self.members.get(name)
        return found if found or field_id is None else self.members.get(field_id)

    def unused(self, name: str) -> str:
        """Return a name for a field that the table has dropped.

        No field of the table has this name.
        """
        taken = self.fields(in_files=False)
        shown = dropped_name(name)
        while shown in taken:
            shown += "'"
        return shown

    def shown(self, path: Path) -> Path:
        """Return the path under which a column of the log is shown for files.

        A dropped column is shown under a name that no field of the table has.
        """
        if not path:
            return ()
        for found in self.fields(in_files=False).get(path[0], ()):
            inside = found.inside or ColumnMapping()
            return (path[0], *(inside.shown(path[1:]) if inside.members else path[1:]))
        return (self.unused(path[0]), *path[1:])

    def stored(self, path: str) -> str | None:
        """Return the path that files have for a column, or None if the table has no such column."""
        return _translated(self, path, in_files=False)

    def logical(self, path: str) -> str:
        """Return the table's path of a column of a file. An unknown path is returned as it is."""
        return _translated(self, path, in_files=True) or path

    def has_field(self, path: str) -> bool:
        """Return whether a path is a field of the table, not a level of a list or a map."""
        return any(
            rest is None or (found.inside is not None and found.inside.has_field(rest))
            for found, rest in _beginnings(self, path, in_files=False)
        )

    def paths(self) -> list[tuple[str, ...]]:
        """Return the paths of the table's columns, without lists, maps and what is inside them."""
        return [
            (member.name, *path)
            for member in self.members.values()
            for path in ([()] if member.inside is None else member.inside.paths())
        ]


class _Field(NamedTuple):
    """A field's position among its siblings, its other name, and the mapping of inner fields."""

    position: int
    name: str
    inside: ColumnMapping | None


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
        """Return the older column for a column inside this one."""
        return OlderColumn(self.path + path, self.shown + shown)


def older_columns(current: ColumnMapping, older: Iterable[ColumnMapping]) -> list[OlderColumn]:
    """Return the columns whose path in an older schema differs from the path shown for files now.

    A column comes before the columns inside it.
    """
    found = (it for each in older for it in _older(current, each, OlderColumn()))
    return [it for it in dict.fromkeys(found) if it.path != it.shown]


def dropped_name(name: str) -> str:
    """Return the name that files show for a column that their table has dropped."""
    return f"{name}{_DROPPED}"


def is_dropped(path: Sequence[str]) -> bool:
    """Return whether a file shows, under this path, a column that its table has dropped."""
    return any(part.rstrip("'").endswith(_DROPPED) for part in path)


def _older(
    now: ColumnMapping | None, then: ColumnMapping | None, above: OlderColumn
) -> Iterator[OlderColumn]:
    """Yield the older names of the columns that are inside the column ``above``.

    ``now`` is the current mapping of ``above``, or None if the table has dropped the column.
    ``then`` is its older mapping, or None if the column had no fields.
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


def _beginnings(
    fields: ColumnMapping, path: str, *, in_files: bool
) -> list[tuple[_Field, str | None]]:
    """Return the fields whose names a dotted path can begin with, each with the rest of the path.

    They are in the order of the structure. A name may itself contain dots.
    """
    known = fields.fields(in_files=in_files)
    ends = [at for at, letter in enumerate(path) if letter == "."]
    found = [(it, path[end + 1 :]) for end in ends for it in known.get(path[:end], ())]
    whole = [(it, None) for it in known.get(path, ())]
    return sorted((*found, *whole), key=lambda it: it[0].position)


def _translated(fields: ColumnMapping, path: str, *, in_files: bool) -> str | None:
    """Return a dotted path with each name translated, or None if no field matches the path.

    With ``in_files``, ``path`` has names in files and the result has names in the table. Without
    it, the translation goes the other way.
    """
    for found, rest in _beginnings(fields, path, in_files=in_files):
        if rest is None:
            return found.name
        below = _below(found.inside, rest, in_files=in_files)
        if below is not None:
            return f"{found.name}.{below}"
    return None


def _below(inside: ColumnMapping | None, path: str, *, in_files: bool) -> str | None:
    """Translate the rest of a path, below a field. Return None if no field matches it."""
    if inside is None:
        return None
    if not inside.inner:
        return _translated(inside, path, in_files=in_files)
    # Two levels of the file format that no field of the schema names: list.element and the like.
    group, _, rest = path.partition(".")
    level, _, rest = rest.partition(".")
    if not rest:
        return path
    below = _below(inside.inner[0 if level == "key" else -1], rest, in_files=in_files)
    return None if below is None else f"{group}.{level}.{below}"
