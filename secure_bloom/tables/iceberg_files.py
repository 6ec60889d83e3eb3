"""Read pyiceberg's files through this package's storage: bounded, and without a table's classes.

A table's metadata choose neither a store nor a class: files are read only from the store of the
metadata file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NoReturn

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.io import InputFile as IcebergInput
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
)

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.storage import open_input
from secure_bloom.storage.memory_budget import refuse_beyond

#: The newest version of manifests that is read: it has all fields of the ones before.
_READ_VERSION = 3


class StoredFiles(FileIO):  # type: ignore[misc, unused-ignore]
    """Reads the files of a table's metadata. ``opened`` returns the path of a location in them."""

    def __init__(self, opened: Callable[[str], str]) -> None:
        super().__init__({})
        self._opened = opened

    def new_input(self, location: str) -> IcebergInput:
        """Return a file that can be read."""
        return _StoredInput(self._opened(location))

    def new_output(self, location: str) -> NoReturn:
        """Raise an error: a table that is read is not written."""
        raise UnsupportedFeatureError("a table that is read is not written", path=location)

    def delete(self, location: Any) -> NoReturn:
        """Raise an error: a table that is read loses no file."""
        raise UnsupportedFeatureError("a table that is read is not written", path=str(location))


class _StoredInput(IcebergInput):  # type: ignore[misc, unused-ignore]
    """One file, which is read as a whole when pyiceberg opens it."""

    def __len__(self) -> int:
        with open_input(self.location) as file:
            return file.size

    def exists(self) -> bool:
        """Return True: a missing file is an error when it is opened."""
        return True

    def open(self, seekable: bool = True) -> Any:
        """Return the bytes of the file. Raises MemoryBudgetError for a file that is too large."""
        del seekable
        with open_input(self.location) as file:
            refuse_beyond(2 * file.size, "a file of the metadata")
            return io.BytesIO(file.all_bytes())


def manifest_entries(
    manifest: ManifestFile, files: FileIO, *, with_deleted: bool = False
) -> list[ManifestEntry]:
    """Return the entries of a manifest, with the fields of deletion vectors.

    pyiceberg's own method leaves out fields that are new in version 3 of the format.
    """
    with AvroFile[ManifestEntry](
        files.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        return [
            _inherit_from_manifest(entry, manifest)
            for entry in reader
            if with_deleted or entry.status != ManifestEntryStatus.DELETED
        ]
