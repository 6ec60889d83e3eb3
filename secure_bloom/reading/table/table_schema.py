"""The schema of a table: the union of the Arrow schemas of its files, as pyarrow reads them.

A column that a file lacks is null there. If files differ in a column's type, the table has a type
that holds all their values. An INT96 is an instant, but has no zone in a file: if other files
have timestamps in UTC, it becomes one too.

A column whose types have no common type is an error only for a read that asks for it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.reading.table.type_promotion import ClashError, common_fields, in_utc

if TYPE_CHECKING:
    from secure_bloom.parquet.footer.columns import FileColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSchema:
    """The Arrow schema of a file.

    ``instants`` has the columns in which every timestamp without a zone is an INT96.
    """

    path: str
    arrow: pa.Schema
    instants: Collection[str] = ()

    @classmethod
    def of(cls, path: str, arrow: pa.Schema, columns: FileColumns) -> FileSchema:
        """Return the schema of a file, whose table has the columns ``arrow`` of ``columns``."""
        return cls(path=path, arrow=arrow, instants=instants_of(columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitedSchema:
    """The columns of a table. ``clashes`` has the error of each column that cannot be read."""

    arrow: pa.Schema
    clashes: Mapping[str, PolicyError] = field(default_factory=dict)

    @property
    def readable(self) -> pa.Schema:
        """The columns that can be read."""
        return pa.schema([found for found in self.arrow if found.name not in self.clashes])

    def check(self, names: Iterable[str]) -> None:
        """Raise PolicyError if one of these columns, or a member of one, cannot be read.

        A dotted name may be that of a member, or of a column.
        """
        for name in names if self.clashes else ():
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                clash = self.clashes.get(".".join(parts[:length]))
                if clash is not None:
                    raise clash


@functools.lru_cache(maxsize=64)
def instants_of(columns: FileColumns) -> frozenset[str]:
    """Return the columns of a file that have INT96, and no other timestamp without a zone."""
    kinds = [(leaf.path[0], leaf.logical) for leaf in columns.leaves]
    local = {name for name, it in kinds if it.kind is Kind.TIMESTAMP and not it.is_utc}
    return frozenset({name for name, it in kinds if it.kind is Kind.INT96} - local)


def unite(schemas: Iterable[FileSchema]) -> UnitedSchema:
    """Return the union of the schemas of files.

    Raises PolicyError without a file.
    """
    known: dict[pa.Schema, FileSchema] = {}
    last = None
    for schema in schemas:
        # Most files share the schema object; to compare schemas takes long.
        if schema.arrow is not last:
            before = known.setdefault(schema.arrow, schema)
            if schema.instants != before.instants:
                both = frozenset(before.instants) & frozenset(schema.instants)
                known[schema.arrow] = replace(before, instants=both)
        last = schema.arrow
    if not known:
        raise PolicyError("there are no files, hence no columns")
    first = next(iter(known))
    if len(known) == 1 and len(set(first.names)) == len(first):
        return UnitedSchema(arrow=first)
    columns: dict[str, list[_Stored]] = {}
    for schema in known.values():
        for found in schema.arrow:
            columns.setdefault(found.name, []).append(_Stored(found, schema))
    united = {name: _united(name, found, len(known)) for name, found in columns.items()}
    return UnitedSchema(
        arrow=pa.schema(
            found if isinstance(found, pa.Field) else columns[name][0].field
            for name, found in united.items()
        ),
        clashes={name: found for name, found in united.items() if isinstance(found, PolicyError)},
    )


class _Stored(NamedTuple):
    """A column as the files of one schema have it."""

    field: pa.Field
    of: FileSchema


def _united(name: str, stored: Sequence[_Stored], schemas: int) -> pa.Field | PolicyError:
    """Return a column of the table, or the error of a read that asks for it."""
    for one, other in itertools.pairwise(stored):
        if one.of is other.of:
            said = "the file has two columns of that name"
            return PolicyError(said, path=one.of.path, column=name)
    lacking: list[list[pa.Field]] = [[]] if len(stored) < schemas else []
    try:
        return common_fields([*([found.field] for found in stored), *lacking])[0]
    except ClashError:
        pass
    instants = [
        found._replace(field=in_utc(found.field)) if name in found.of.instants else found
        for found in stored
    ]
    try:
        return common_fields([*([found.field] for found in instants), *lacking])[0]
    except ClashError as clash:
        return _clash(clash, instants)


def _clash(clash: ClashError, stored: Sequence[_Stored]) -> PolicyError:
    """Return an error that names the first two files whose column types have no common type."""
    column, (one, other), types = clash.path[0], stored[:2], clash.types
    for pair in itertools.combinations(stored, 2):
        try:
            common_fields([[found.field] for found in pair])
        except ClashError as found:
            types, column, (one, other) = found.types, ".".join(found.path), pair
            break
    return PolicyError(
        f"it is {types[0]} in {one.of.path} and {types[1]} here, "
        "and no type has all values of both",
        hint="read the files one by one, or leave the column out, or write one of the files again "
        "with the other's type",
        path=other.of.path,
        column=column,
    )
