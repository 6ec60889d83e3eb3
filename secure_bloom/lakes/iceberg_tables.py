"""Iceberg tables: a table of a catalog, or a metadata file, and its manifests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg.catalog import METADATA_SUFFIX, is_in_catalog, require_pyiceberg
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableRows, TableVersion
from secure_bloom.storage import local_path, name_of

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.table import IcebergFile, IcebergTable
    from secure_bloom.lakes.writable_table import TableChoice, WritableTable
    from secure_bloom.storage.column_mapping import ColumnMapping


class IcebergTables(TableFormat):
    """Iceberg tables, each named by its address in a catalog or by its metadata file.

    A run commits new files by a snapshot of the catalog.
    """

    title = "an Iceberg table"
    log_folder = "metadata"
    # Anywhere in the name: a compressed one ends in .metadata.json.gz.
    log_mark = re.compile(r".*\.metadata\.json.*", re.DOTALL)
    refusal = (
        "the catalog knows which file counts: give iceberg://CATALOG/NAMESPACE.TABLE in the place "
        "of the folder; verbs that read take the current metadata file too, "
        "metadata/*.metadata.json, and an audit takes both beside other folders"
    )
    rewritten_by = (
        "give secure-bloom {verb} the table by its catalog, as iceberg://CATALOG/NAMESPACE.TABLE: "
        "a folder or a metadata file takes no commit"
    )

    def recognizes(self, path: str) -> bool:
        """Return whether a path names a table of a catalog, or has the name of a metadata file."""
        return is_in_catalog(path) or name_of(local_path(path)).endswith(METADATA_SUFFIX)

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Return the table of a catalog or of a metadata file."""
        from secure_bloom.lakes.iceberg.table import iceberg_table

        found = iceberg_table(path, at)
        return ListedTable(
            format=self,
            place=found.path,
            files=found.live,
            column_mapping=found.names,
            locations=found.locations,
            schema=lambda: frozenset(found.column_names()),
            state=found,
        )

    def table_to_write(self, paths: Sequence[str]) -> str | None:
        """Return the table of a catalog if it is the only path, or None."""
        named = next(filter(is_in_catalog, paths), None)
        if named is not None and len(paths) > 1:
            raise PolicyError("a table of a catalog must be given alone", path=named)
        return named

    def takes_verb(self, verb: str, path: str) -> bool:  # noqa: ARG002 - every one
        """Return whether a path names a table of a catalog, which takes commits."""
        return is_in_catalog(path)

    def open_to_write(self, place: str, choice: TableChoice) -> WritableTable:
        """Return the table of a catalog."""
        require_pyiceberg(place)
        from secure_bloom.lakes.iceberg.writable import WritableIceberg

        return WritableIceberg(place, choice)

    def rows_of(self, state: IcebergTable, files: Sequence[IcebergFile]) -> TableRows:
        """Return the columns of the snapshot's schema, and the deletes that apply to the files."""
        if state.refused is not None:
            raise UnsupportedFeatureError(
                state.refused,
                hint="read the table with its own engine, or compact it; probe, inspect and audit "
                "look at the files all the same",
                path=state.path,
            )
        return TableRows(
            columns=state.columns,
            names=state.names,
            partitions=[{} for _ in files],
            deleted=[file.deletes.positions for file in files],
            equality_deletes=[file.deletes.equality for file in files],
            fills=[file.fills for file in files],
        )

    def files_of_branches(self, state: IcebergTable) -> dict[str, str]:
        """Return the live data files of all branches but main, each with the name of a branch."""
        from secure_bloom.lakes.iceberg.table import files_of_branches

        return files_of_branches(state)

    def older_names(self, state: IcebergTable) -> list[ColumnMapping]:
        """Return the names in all schemas of the metadata file."""
        from secure_bloom.lakes.iceberg.table import older_names

        return older_names(state)
