"""Map a table's names of columns to the names or ids that its files have.

With Delta's column mapping, a file has physical names or field ids, and the table's log says which
column each one is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

#: The name of a field in a file: its physical name, or its id.
StoredName = str | int


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
        shown = f"{name} (not in the table)"
        while shown in taken:
            shown += "'"
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedField:
    """A field's name in the table, and the mapping of the fields inside it."""

    name: str
    inside: ColumnMapping | None = None
