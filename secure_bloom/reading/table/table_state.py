"""The columns and files of a table for a read, as its log has them. A bare folder has no log.

The log of a Delta table has the columns in their order, and for each file the partition values and
the deleted rows.  With column mapping, files have other names of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from secure_bloom.errors import PolicyError, UnsupportedFeatureError, located
from secure_bloom.lakes import TableListing, column_names
from secure_bloom.lakes.deletion_vectors import DeletedRows, PaimonDeletedRows
from secure_bloom.lakes.delta.arrow_types import arrow_field, of_table
from secure_bloom.lakes.iceberg.table import IcebergFile, IcebergTable
from secure_bloom.lakes.live_file import LiveFile, Snapshot
from secure_bloom.lakes.paimon.arrow_types import arrow_field as paimon_field
from secure_bloom.lakes.paimon.arrow_types import partition_scalar
from secure_bloom.lakes.paimon.table import PaimonFile, PaimonTable
from secure_bloom.reading.table.hive_partitions import Values, partition_fields, partition_values
from secure_bloom.storage import TableLog
from secure_bloom.storage.column_mapping import ColumnMapping

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.deletes import DeletedPositions, EqualityFile

    Deleted = DeletedRows | PaimonDeletedRows | DeletedPositions

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
        """Return the columns of a file that the table has."""
        return stored

    def with_columns_of_log(self, stored: pa.Schema) -> pa.Schema:
        """Return the columns of the files, and those that no file has."""
        return stored


class LoggedTable:
    """One version of a table whose log or metadata name its columns.

    ``fields`` are its columns in their order. ``partitions`` and ``deleted`` have an entry for each
    file.  Names of folders are not used.
    """

    def __init__(
        self,
        fields: pa.Schema,
        names: ColumnMapping | None,
        partition_columns: Collection[str],
        partitions: list[Values],
        deleted: Sequence[Deleted | None],
        files: Sequence[IcebergFile] = (),
        fills: Sequence[Mapping[str, pa.Scalar]] = (),
    ) -> None:
        self._fields = fields
        self.names = names
        self._own = frozenset(partition_columns)
        self.partitions = partitions
        self._deleted = deleted
        self._files = files
        self._fills = fills or [file.fills for file in files]
        self.order = tuple(fields.names)
        self._known: dict[int, tuple[pa.Schema, pa.Schema]] = {}

    @classmethod
    def of_delta(cls, table: Snapshot, files: Sequence[LiveFile]) -> LoggedTable:
        """Return a Delta table with the live files that are read."""
        with located(path=table.folder):
            fields = pa.schema(map(arrow_field, table.metadata.schema["fields"]))
            names = column_names(table.metadata)
        vectors = [file.deletion_vector for file in files]
        return cls(
            fields=fields,
            names=names,
            partition_columns=table.metadata.partition_columns,
            partitions=[file.partition_values for file in files],
            deleted=[
                None if vector is None else DeletedRows(folder=table.folder, vector=vector)
                for vector in vectors
            ],
        )

    @classmethod
    def of_iceberg(cls, table: IcebergTable, files: Sequence[IcebergFile]) -> LoggedTable:
        """Return an Iceberg table with the data files that are read.

        Raises UnsupportedFeatureError if its rows cannot be read.
        """
        if table.refused is not None:
            raise UnsupportedFeatureError(
                table.refused,
                hint="read the table with its own engine, or compact it; probe, inspect and audit "
                "look at the files all the same",
                path=table.path,
            )
        return cls(
            fields=table.columns,
            names=table.names,
            partition_columns=(),
            partitions=[{} for _ in files],
            deleted=[file.deletes.positions for file in files],
            files=files,
        )

    @classmethod
    def of_paimon(cls, table: PaimonTable, files: Sequence[PaimonFile]) -> LoggedTable:
        """Return a Paimon table with the data files that are read.

        Raises UnsupportedFeatureError if its rows cannot be read.
        """
        table.refuse_unmerged()
        with located(path=table.folder):
            fields = pa.schema(map(paimon_field, table.schema.fields))
            fills = [_partition_fills(table, file) for file in files]
        return cls(
            fields=fields,
            names=table.names(),
            partition_columns=(),
            partitions=[{} for _ in files],
            deleted=[
                None if file.vector is None else PaimonDeletedRows(vector=file.vector)
                for file in files
            ],
            fills=fills,
        )

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns, in the types of the table."""
        return [field for field in self._fields if field.name in self._own]

    def deleted(self, ordinal: int) -> Deleted | None:
        """Return the deleted rows of a file, or None."""
        return self._deleted[ordinal]

    def equality_deletes(self, ordinal: int) -> tuple[EqualityFile, ...]:
        """Return the equality deletes that apply to a file."""
        return self._files[ordinal].deletes.equality if self._files else ()

    def fills(self, ordinal: int) -> Mapping[str, pa.Scalar]:
        """Return the values, other than null, of columns that a file lacks."""
        return self._fills[ordinal] if self._fills else _NO_FILLS

    def columns_of(self, stored: pa.Schema) -> pa.Schema:
        """Return the file's columns, and members of structures, that the table has."""
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
        return pa.schema(
            [
                stored.field(field.name) if field.name in stored.names else field
                for field in self._fields
            ]
        )


def _partition_fills(table: PaimonTable, file: PaimonFile) -> dict[str, pa.Scalar]:
    """Return the values of partition columns, because files of a migrated table lack them."""
    columns = [table.schema.named(name) for name in table.schema.partition_keys]
    return {
        column.name: partition_scalar(value, column)
        for column, value in zip(columns, file.partition, strict=True)
        if column is not None and value is not None
    }


TableState = FolderState | LoggedTable


def table_state(listing: TableListing, given: Sequence[str]) -> TableState:
    """Return the state of the files to be read: bare files, or one table.

    Raises PolicyError if a table with a log is to be read together with other files.
    """
    if not listing.tables:
        return FolderState(listing.paths, given)
    _refuse_others(listing)
    [table] = listing.tables
    files: list[Any] = [listing.files[path] for path in listing.paths]
    return _STATES[table.log](table.state, files)


#: How the rows of a table are read, by its format.
_STATES: Mapping[TableLog, Callable[[Any, list[Any]], LoggedTable]] = {
    TableLog.DELTA: LoggedTable.of_delta,
    TableLog.ICEBERG: LoggedTable.of_iceberg,
    TableLog.PAIMON: LoggedTable.of_paimon,
}


def _refuse_others(listing: TableListing) -> None:
    """Raise PolicyError if there are files of more than one table."""
    if len(listing.tables) > 1 or not set(listing.files).issuperset(listing.paths):
        raise PolicyError(
            "a table with a log is read alone, and the paths lead to other files too",
            hint="read each table by itself",
            path=listing.tables[0].place,
        )
