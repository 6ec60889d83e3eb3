"""The columns and files of a table for a read, from its log, or else from its files.

The log of a Delta table has the columns in their order, and for each file the partition values
and the deleted rows. With column mapping, the column names in files differ from the table's.

A plain folder has no log. Its schema is the union of the Arrow schemas of its files, as pyarrow
reads them.  A column that a file lacks is null there. If files differ in a column's type, the table
has a type that holds all their values. An INT96 is an instant, but has no zone in a file: if other
files have timestamps in UTC, it becomes one too.  A column whose types have no common type is an
error only for a read that asks for it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.hive_partitions import partition_fields, partition_values
from secure_bloom.lakes.table_format import TableRows
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.reading.table.type_promotion import ClashError, common_fields, in_utc
from secure_bloom.storage.column_mapping import ColumnMapping

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.deletes import EqualityFile
    from secure_bloom.lakes.table_format import Deleted
    from secure_bloom.parquet.footer.columns import FileColumns

_NO_FILLS: Mapping[str, pa.Scalar] = {}


class FolderState:
    """A bare folder: names of folders are partition values, and files have the columns."""

    def __init__(self, paths: Sequence[str], given: Sequence[str]) -> None:
        self.partitions = [partition_values(path, given) for path in paths]

    names: ColumnMapping | None = None
    order: tuple[str, ...] = ()

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns."""
        return partition_fields(self.partitions)

    def deleted(self, ordinal: int) -> Deleted | None:  # noqa: ARG002 - none of any file
        """Return the deleted rows of a file, or None."""
        return None

    def equality_deletes(self, ordinal: int) -> tuple[EqualityFile, ...]:  # noqa: ARG002 - none
        """Return the equality deletes that apply to a file."""
        return ()

    def fills(self, ordinal: int) -> Mapping[str, pa.Scalar]:  # noqa: ARG002 - none of any file
        """Return the values, other than null, of columns that a file lacks."""
        return _NO_FILLS

    def columns_of(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of a file unchanged, because a plain folder has no log."""
        return stored

    def with_columns_of_log(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of the files unchanged, because a plain folder has no log."""
        return stored


class LoggedTable:
    """One version of a table whose log or metadata name its columns.

    Names of folders are not used.
    """

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows
        self._fields = rows.columns
        self.names = rows.names
        self._own = frozenset(rows.partition_columns)
        self.partitions = rows.partitions
        self.order = tuple(rows.columns.names)
        self._known: dict[int, tuple[pa.Schema, pa.Schema]] = {}

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns, in the types of the table."""
        return [field for field in self._fields if field.name in self._own]

    def deleted(self, ordinal: int) -> Deleted | None:
        """Return the deleted rows of a file, or None."""
        return self._rows.deleted[ordinal]

    def equality_deletes(self, ordinal: int) -> tuple[EqualityFile, ...]:
        """Return the equality deletes that apply to a file."""
        return self._rows.equality_deletes[ordinal] if self._rows.equality_deletes else ()

    def fills(self, ordinal: int) -> Mapping[str, pa.Scalar]:
        """Return the values, other than null, of columns that a file lacks."""
        return self._rows.fills[ordinal] if self._rows.fills else _NO_FILLS

    def columns_of(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of a file, without columns and members that the table lacks."""
        known = self._known.get(id(stored))
        if known is None:
            # The schema is held, so that its id is not given to another.
            known = self._known[id(stored)] = (stored, self._restricted(stored))
        return known[1]

    def _restricted(self, stored: pa.Schema) -> pa.Schema:
        mine = [field for field in stored if field.name in self.order]
        return pa.schema(
            [f.with_type(of_table(f.type, self._fields.field(f.name).type)) for f in mine]
        )

    def with_columns_of_log(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of the table in its order, including columns that no file has."""
        in_files = frozenset(stored.names)
        return pa.schema(
            [
                stored.field(field.name) if field.name in in_files else field
                for field in self._fields
            ]
        )


TableState = FolderState | LoggedTable


def table_state(listing: TableListing, given: Sequence[str]) -> TableState:
    """Return the state of the files to be read: bare files, or one table.

    Raises PolicyError if a table with a log is to be read together with other files.
    """
    if not listing.tables:
        return FolderState(listing.paths, given)
    _refuse_others(listing)
    [table] = listing.tables
    files = [listing.files[path] for path in listing.paths]
    return LoggedTable(table.format.rows_of(table.state, files))


def _refuse_others(listing: TableListing) -> None:
    """Raise PolicyError if there are files of more than one table."""
    if len(listing.tables) > 1 or not set(listing.files).issuperset(listing.paths):
        raise PolicyError(
            "a table with a log is read alone, and the paths lead to other files too",
            hint="read each table by itself",
            path=listing.tables[0].place,
        )


def of_table(stored: pa.DataType, table: pa.DataType) -> pa.DataType:
    """Return the file's type of a column, without members that the table lacks."""
    if pa.types.is_struct(stored) and pa.types.is_struct(table):
        return pa.struct([_member(stored, member) for member in table])
    if pa.types.is_list(stored) and pa.types.is_list(table):
        value = stored.value_field
        return pa.list_(value.with_type(of_table(value.type, table.value_type)))
    if pa.types.is_map(stored) and pa.types.is_map(table):
        item = stored.item_field
        return pa.map_(stored.key_field, item.with_type(of_table(item.type, table.item_type)))
    return stored


def _member(stored: pa.StructType, member: pa.Field) -> pa.Field:
    index = stored.get_field_index(member.name)
    if index < 0:
        return member
    found = stored.field(index)
    return found.with_type(of_table(found.type, member.type))


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
