"""What a table's own log says of its columns and files, for a read: nothing of a bare folder.

Of a Delta table the log tells the columns, in their order, and of each file the partition values
and the deleted rows.  Files have the columns under names of their own with column mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from secure_bloom.column_names import NamesOfTable
from secure_bloom.errors import PolicyError, located
from secure_bloom.reading.table.delta_types import arrow_field, of_table
from secure_bloom.reading.table.hive_partitions import Values, partition_fields, partition_values
from secure_bloom.tables import TableListing, column_names
from secure_bloom.tables.deletion_vectors import DeletedRows
from secure_bloom.tables.live_file import LiveFile, Snapshot


class FolderState:
    """A bare folder: names of folders are partition values, and files tell the columns."""

    def __init__(self, paths: Sequence[str], given: Sequence[str]) -> None:
        self.partitions = [partition_values(path, given) for path in paths]

    names: NamesOfTable | None = None
    order: tuple[str, ...] = ()

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns."""
        return partition_fields(self.partitions)

    def deleted(self, ordinal: int) -> DeletedRows | None:  # noqa: ARG002 - none of any file
        """The deleted rows of a file; None for none."""
        return None

    def columns_of(self, stored: pa.Schema) -> pa.Schema:
        """The columns of a file that the table has."""
        return stored

    def with_columns_of_log(self, stored: pa.Schema) -> pa.Schema:
        """The columns of the files, and those that no file has."""
        return stored


class DeltaState:
    """One version of a Delta table."""

    def __init__(self, table: Snapshot, files: Sequence[LiveFile]) -> None:
        with located(path=table.folder):
            self._fields = pa.schema(
                [arrow_field(column) for column in table.metadata.schema["fields"]]
            )
            self.names = column_names(table.metadata)
        self._folder = table.folder
        self._files = files
        self._own = set(table.metadata.partition_columns)
        self.order = tuple(self._fields.names)
        self.partitions: list[Values] = [file.partition_values for file in files]
        self._known: dict[int, tuple[pa.Schema, pa.Schema]] = {}

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns, in the types of the table."""
        return [field for field in self._fields if field.name in self._own]

    def deleted(self, ordinal: int) -> DeletedRows | None:
        """The deleted rows of a file; None for none."""
        vector = self._files[ordinal].deletion_vector
        return None if vector is None else DeletedRows(folder=self._folder, vector=vector)

    def columns_of(self, stored: pa.Schema) -> pa.Schema:
        """The columns of a file that the table has, and of structures the members that it has."""
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
        """The columns of the files, and those that no file has, in the order of the table."""
        return pa.schema(
            [
                stored.field(field.name) if field.name in stored.names else field
                for field in self._fields
            ]
        )


TableState = FolderState | DeltaState


def table_state(listing: TableListing, given: Sequence[str]) -> TableState:
    """The state of what is read: bare files, or one table.

    Raises PolicyError for a Delta table that is to be read together with others.
    """
    if not listing.snapshots:
        return FolderState(listing.paths, given)
    live: Mapping[str, LiveFile] = listing.live
    if len(listing.snapshots) > 1 or any(path not in live for path in listing.paths):
        raise PolicyError(
            "a Delta table is read alone, and the paths lead to other files too",
            hint="read each table by itself",
            path=listing.snapshots[0].folder,
        )
    return DeltaState(listing.snapshots[0], [live[path] for path in listing.paths])
