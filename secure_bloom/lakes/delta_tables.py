"""Delta tables: the commits and checkpoints in ``_delta_log`` name the live files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from secure_bloom.errors import FormatError, PolicyError, located
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableRows, TableVersion
from secure_bloom.storage import is_object_uri, join, local_path
from secure_bloom.storage.dispatch import tree_of

if TYPE_CHECKING:
    from secure_bloom.lakes.delta.live_file import LiveFile, Snapshot
    from secure_bloom.lakes.writable_table import TableChoice, WritableTable
    from secure_bloom.storage.column_mapping import ColumnMapping


# Readers of logs are imported in the methods, because most runs find no table.
class DeltaTables(TableFormat):
    """Tables whose log is ``_delta_log``. A run commits new files to the log."""

    title = "a Delta table"
    log_folder = "_delta_log"
    is_found_by_log = True
    refusal = (
        "give add, reencrypt or rotate the table's folder alone, with --where for some of its "
        "partitions: they commit to its log; else read the table with its own engine"
    )

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Return the table in a folder."""
        from secure_bloom.lakes.delta.actions import column_names
        from secure_bloom.lakes.delta.snapshot import snapshot

        if at.snapshot is not None:
            raise PolicyError(
                "a Delta table has versions, not snapshots",
                hint="--version N names one",
                path=path,
            )
        found = snapshot(path, version=at.version, timestamp=at.timestamp)
        if found is None:
            raise FormatError("the table's log is gone", path=path)
        with located(path=path):
            names = column_names(found.metadata)
        return ListedTable(
            format=self,
            place=path,
            files={file.path: file for file in found.files},
            column_mapping=names,
            partition_columns=found.metadata.partition_columns,
            state=found,
        )

    def table_to_write(self, paths: Sequence[str]) -> str | None:
        """Return the folder of a Delta table if it is the only path, or None."""
        if len(paths) != 1:
            return None
        path = local_path(paths[0])
        folder = path if is_object_uri(path) else path.rstrip("/") or "/"
        return folder if tree_of(folder).is_folder(join(folder, self.log_folder)) else None

    def takes_verb(self, verb: str, path: str) -> bool:  # noqa: ARG002 - of any table
        """Return True, except for ``decrypt``, which writes to a folder without a log."""
        return verb != "decrypt"

    def open_to_write(self, place: str, choice: TableChoice) -> WritableTable:
        """Return the table in a folder."""
        from secure_bloom.lakes.delta.writable import WritableDelta

        return WritableDelta(place, choice)

    def rows_of(self, state: Snapshot, files: Sequence[LiveFile]) -> TableRows:
        """Return the columns and partition values of the log, and its deletion vectors."""
        import pyarrow as pa

        from secure_bloom.lakes.deletion_vectors import DeletedRows
        from secure_bloom.lakes.delta.actions import column_names
        from secure_bloom.lakes.delta.arrow_types import arrow_field

        with located(path=state.folder):
            columns = pa.schema(map(arrow_field, state.metadata.schema["fields"]))
            names = column_names(state.metadata)
        vectors = [file.deletion_vector for file in files]
        return TableRows(
            columns=columns,
            names=names,
            partition_columns=state.metadata.partition_columns,
            partitions=[file.partition_values for file in files],
            deleted=[
                None if vector is None else DeletedRows(folder=state.folder, vector=vector)
                for vector in vectors
            ],
        )

    def older_names(self, state: Snapshot) -> list[ColumnMapping]:
        """Return the names in the schemas of all versions that the log still has."""
        from secure_bloom.lakes.delta.history import older_names

        return older_names(state.folder)

    def lacks_a_column(self, state: Any, names: Collection[str]) -> bool | None:
        """Return whether the table's schema lacks one of the columns."""
        from secure_bloom.lakes.delta.actions import all_columns

        known = all_columns(state.metadata)
        return any(known.stored(name) is None for name in names)
