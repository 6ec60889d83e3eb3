"""Open a table of a catalog for a commit, and refuse by name what a commit would lose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from secure_bloom.errors import FileChangedError, FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.iceberg.catalog import (
    catalog_errors,
    load_table,
    store_grant,
)
from secure_bloom.lakes.iceberg.locations import TablePlaces, opened_location
from secure_bloom.lakes.iceberg.schema_fields import names_of_structure
from secure_bloom.lakes.iceberg.table import KEY_PROPERTY
from secure_bloom.storage import below
from secure_bloom.storage.store_grants import StoreGrant

MAIN: Final = "main"
#: Format versions whose snapshots are written here.  Version 3 gives rows ids by their file.
_WRITABLE: Final = (1, 2)
_PROVIDER_PROPERTY: Final = "write.py-location-provider.impl"


@dataclass(slots=True)
class CommitTable:
    """A table of a catalog and one of its branches, as the catalog showed it last.

    ``path`` is the table's name as the caller gave it: ``iceberg://CATALOG/NAMESPACE.TABLE``.
    ``grant`` is the right to open its data files in a store, as long as the table is referenced.
    """

    path: str
    table: Table
    branch: str
    grant: StoreGrant | None = field(repr=False)

    @property
    def metadata(self) -> Any:
        """The table's metadata, as pyiceberg parsed it."""
        return self.table.metadata

    @property
    def io(self) -> Any:
        """The FileIO that opens the table's metadata files."""
        return self.table.io

    @property
    def head(self) -> Snapshot | None:
        """The snapshot at the head of the branch, or None for a table without rows."""
        return self.metadata.snapshot_by_name(self.branch)

    @property
    def parent(self) -> Snapshot:
        """The snapshot at the head of a branch that has rows."""
        if self.head is None:
            raise FormatError(f"the branch {self.branch} has lost its snapshot", path=self.path)
        return self.head

    @property
    def names(self) -> Any:
        """The column mapping from the field ids in data files to the table's names."""
        return names_of_structure(self.metadata.schema().as_struct())

    def folders(self) -> list[str]:
        """Return the paths of the table's location and of the folder of its data files."""
        found = (self.metadata.location, self.table.location_provider().data_path)
        return [opened_location(it) for it in found]

    def location(self, path: str) -> str:
        """Return the path that opens a data file named in the metadata.

        Raises FormatError for a file outside the table's folders.
        """
        opened = opened_location(path)
        if not any(below(opened, folder) for folder in self.folders()):
            raise FormatError(
                "a manifest names a data file outside the table's location",
                hint="the table's own engine can rewrite that file into the table",
                path=self.path,
            )
        return opened

    def new_path(self, location: str) -> str:
        """Return the path of a new file of the table.

        Raises an error if a folder below the table's own is a symbolic link.
        """
        places = TablePlaces()
        places.of(self.table)
        return places.new_path(opened_location(location))

    def refresh(self) -> None:
        """Read the table from the catalog again.

        Raises the errors of :meth:`reload`, and UnsupportedFeatureError for a table that this
        package does not commit to any more.
        """
        self.reload()
        refuse_unwritable(self)

    def reload(self) -> None:
        """Read the table from the catalog again.

        Does not check whether this package may still commit to it. Raises FileChangedError if
        another table has the name now.
        """
        fresh = load_table(self.path)
        if fresh.metadata.table_uuid != self.metadata.table_uuid:
            raise FileChangedError(
                "the table was dropped meanwhile, and another one has its name", path=self.path
            )
        self.table, self.grant = fresh, store_grant(fresh, self.path)

    def commit(self, requirements: Sequence[Any], updates: Sequence[Any]) -> None:
        """Ask the catalog for a change of the table. Raises the exceptions of pyiceberg."""
        self.table.catalog.commit_table(self.table, tuple(requirements), tuple(updates))


def open_table(path: str, branch: str | None = None) -> CommitTable:
    """Load a table for a commit.

    Raises PolicyError if the catalog does not have the table or the branch, and
    UnsupportedFeatureError for a table that this package does not commit to.
    """
    table = load_table(path)
    found = CommitTable(path, table, branch or MAIN, store_grant(table, path))
    refuse_unwritable(found)
    with catalog_errors(path):
        found.table.location_provider()
    return found


def refuse_unwritable(table: CommitTable) -> None:
    """Raise an error for a table, or a branch, that this package does not commit to."""
    metadata = table.metadata
    properties: Mapping[str, str] = metadata.properties
    if metadata.format_version not in _WRITABLE:
        raise UnsupportedFeatureError(
            f"the table has format version {metadata.format_version}: rows have ids, which a new "
            "data file would change",
            hint="versions 1 and 2 are written",
            path=table.path,
        )
    if KEY_PROPERTY in properties:
        raise UnsupportedFeatureError(
            f"the table encrypts its files by Iceberg's own keys ({KEY_PROPERTY})",
            hint="filters are added to files of Parquet Modular Encryption, or in clear",
            path=table.path,
        )
    if _PROVIDER_PROPERTY in properties:
        raise UnsupportedFeatureError(
            f"the table's property {_PROVIDER_PROPERTY} names a class to be imported",
            hint="remove the property: a class that a table names is never imported",
            path=table.path,
        )
    _refuse_branch(table)


def _refuse_branch(table: CommitTable) -> None:
    refs = table.metadata.refs
    if table.branch not in refs:
        if table.branch == MAIN and not refs:
            return
        known = ", ".join(sorted(refs))
        raise PolicyError(
            f"the table has no branch {table.branch}",
            hint=f"it has {known}",
            path=table.path,
        )
    if str(refs[table.branch].snapshot_ref_type) != "branch":
        raise PolicyError(f"{table.branch} is a tag, and commits need a branch", path=table.path)
