"""The table's names of columns, if its files call them something else.

Delta's column mapping: a file has physical names, or the ids of fields, and the table's log says
which column is meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The name of a field in a file: its physical name, or its id.
StoredName = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """The names of the fields of a structure, and of those inside them.

    ``members`` are a structure's fields by what a file calls them.  ``inner`` is what a list or a
    map holds: its element, or key and value; None for what has no fields.
    """

    members: Mapping[StoredName, NamedField] = field(default_factory=dict)
    inner: Sequence[ColumnMapping | None] = ()

    @property
    def are_ids(self) -> bool:
        """Whether fields are found by their ids alone."""
        return bool(self.members) and all(isinstance(name, int) for name in self.members)

    def find(self, name: str, field_id: int | None) -> NamedField | None:
        """Return the field that a file calls so, by its name or its id."""
        found = self.members.get(name)
        return found if found or field_id is None else self.members.get(field_id)

    def unused(self, name: str) -> str:
        """Return a name for a field that the table has no more, which none of its own has."""
        taken = {member.name for member in self.members.values()}
        shown = f"{name} (not in the table)"
        while shown in taken:
            shown += "'"
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedField:
    """A field's name in the table, and those of the fields inside it."""

    name: str
    inside: ColumnMapping | None = None
