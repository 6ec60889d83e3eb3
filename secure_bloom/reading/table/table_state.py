"""The columns and files of a table for a read, from its log. A plain folder has no log.

The log of a Delta table has the columns in their order, and for each file the partition values
and the deleted rows. With column mapping, files have other names of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from secure_bloom.errors import PolicyError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.hive_partitions import partition_fields, partition_values
from secure_bloom.lakes.table_format import TableRows
from secure_bloom.storage.column_mapping import ColumnMapping

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.deletes import EqualityFile
    from secure_bloom.lakes.table_format import Deleted

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
        """Return the columns of the table, in its order, also those that no file has."""
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
