"""Turn locations in the metadata of a table into paths, and find where its new files may be.

    file:///lake/db.t/data/x.parquet  ->  /lake/db.t/data/x.parquet

Iceberg does not encode paths in its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.storage.paths import (
    absolute_path,
    below,
    is_object_uri,
    object_uri,
    without_links,
)

#: Properties of a table that name a folder for its files.
PLACES: Final = ("write.data.path", "write.object-storage.path", "write.metadata.path")


@dataclass(slots=True)
class TablePlaces:
    """The folders of a table, and its metadata file, whose permissions new files get."""

    roots: Sequence[str] = ()
    like: str = ""

    def of(self, table: Any) -> None:
        """Store the folders and the metadata file of a loaded table."""
        given = (table.metadata.properties.get(name) for name in PLACES)
        places = [table.metadata.location, *filter(None, given)]
        # The outermost one first: what lies in it was made by the table's writers.
        self.roots = sorted({opened_location(it) for it in places}, key=len)
        if is_local(table.metadata_location):
            self.like = local_location(table.metadata_location)

    def new_path(self, opened: str) -> str:
        """Return the path of a new file of the table.

        Raises an error if a folder below the table's own is a symbolic link.
        """
        root = next((it for it in self.roots if below(opened, it) is not None), None)
        if root is None:
            raise FormatError("a new file would be outside the table's location", path=opened)
        return without_links(opened, root)


def is_local(location: str) -> bool:
    """Return whether a location is a local path or a ``file:`` URI."""
    return "://" not in location or location.lower().startswith("file://")


def opened_location(location: str) -> str:
    """Return the path or URI that opens a file of the metadata; Iceberg does not encode paths."""
    return location if is_object_uri(location) else local_location(location)


def local_location(location: str) -> str:
    """Return the path of a local file that the metadata names.

    A relative one starts in the current folder. It becomes absolute, for processes that run in
    another folder, and for reads after this one has gone to another.
    """
    path = location.removeprefix("file://") if location.startswith("file:///") else location
    path = path.removeprefix("file:") if path.startswith("file:/") else path
    if "://" in path or "\0" in path or ".." in path.split("/"):
        raise UnsupportedFeatureError("the metadata of a local Iceberg table names files elsewhere")
    return path if path.startswith("/") else absolute_path(path)


def opener(metadata_file: str) -> Callable[[str], str]:
    """Return a function that turns a location in the metadata into a path or URI.

    Raises UnsupportedFeatureError for a store other than that of the metadata file.
    """
    if not is_object_uri(metadata_file):
        return local_location
    store = object_uri(metadata_file)

    def opened(location: str) -> str:
        found = object_uri(location) if is_object_uri(location) else None
        if found is None or (found.kind, found.authority) != (store.kind, store.authority):
            raise UnsupportedFeatureError(
                "the metadata of the Iceberg table name a file in another store"
            )
        # Endpoint and region of the metadata file are those of all files.
        return str(replace(found, query=store.query))

    return opened
