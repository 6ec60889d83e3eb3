"""Read pyiceberg's files through this package's storage: bounded, and without a table's classes.

A table's metadata choose neither a store nor a class: files are read only from the store of the
metadata file.  Metadata files of a catalog's table in S3 are also written here, each by one
request.

The memory that a file takes when pyiceberg decodes it is computed before that:

    metadata.json        JSON, maybe packed by gzip; each part becomes an object of pyiceberg
    manifest, list       Avro, in any codec; each record becomes an object of pyiceberg

A hostile file can claim any number of records, and any unpacked size, at no cost.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import Any, Final

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.io import InputFile as IcebergInput
from pyiceberg.io import OutputFile as IcebergOutput
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes.avro_blocks import MAGIC, AvroBlocks, AvroCost
from secure_bloom.lakes.iceberg.locations import TablePlaces, local_location
from secure_bloom.running.memory_budget import DecodedBytes, json_size, refuse_beyond
from secure_bloom.storage import open_input
from secure_bloom.storage.dispatch import create_file, remove_file
from secure_bloom.storage.store_grants import StoreGrant

#: The newest version of manifests that is read: it has all fields of the ones before.
_READ_VERSION = 3
#: Raises MemoryBudgetError for the bytes of a file that takes too much when it is decoded.
Check = Callable[[bytes], None]


def check_alone(content: bytes) -> None:
    """Check that one metadata file fits into the memory budget when it is decoded as a whole."""
    check_decoded_size(content, DecodedBytes("a file of the table's metadata"))


class StoredFiles(FileIO):  # type: ignore[misc, unused-ignore]
    """Reads the files of a table's metadata. ``opened`` returns the path of a location in them."""

    def __init__(self, opened: Callable[[str], str]) -> None:
        super().__init__({})
        self._opened = opened
        self.check: Check = check_alone

    def new_input(self, location: str) -> IcebergInput:
        """Return a file that can be read."""
        return _StoredInput(self._opened(location), self.check)

    def new_output(self, location: str) -> IcebergOutput:
        """Raise an error: a table that is read is not written."""
        raise UnsupportedFeatureError("a table that is read is not written", path=location)

    def delete(self, location: Any) -> None:
        """Raise an error: a table that is read loses no file."""
        raise UnsupportedFeatureError("a table that is read is not written", path=str(location))


class CatalogFiles(StoredFiles):
    """Reads and writes the files of a table in S3, by the settings that its catalog gives.

    ``grant`` holds these settings, or is None if the environment decides.  ``properties`` are the
    catalog's.
    """

    def __init__(self, properties: Mapping[str, str], grant: StoreGrant | None) -> None:
        super().__init__(str)
        self.properties = dict(properties)
        self._grant = grant

    def new_output(self, location: str) -> IcebergOutput:
        """Return a file that is written when it is closed."""
        return _StoredOutput(location)

    def delete(self, location: Any) -> None:
        """Remove a file."""
        remove_file(location if isinstance(location, str) else location.location)


class LocalFiles(StoredFiles):
    """Reads and writes the files of a table on local disks. ``places`` are the table's folders.

    No file is written through a link below these folders.
    """

    def __init__(self, properties: Mapping[str, str], places: TablePlaces) -> None:
        super().__init__(local_location)
        self.properties = dict(properties)
        self._places = places

    def new_output(self, location: str) -> IcebergOutput:
        """Return a file that is written when it is closed."""
        return _LocalOutput(location, self._places)

    def delete(self, location: Any) -> None:
        """Remove a file."""
        path = location if isinstance(location, str) else location.location
        remove_file(self._places.new_path(local_location(path)))


class _StoredInput(IcebergInput):  # type: ignore[misc, unused-ignore]
    """One file, which is read as a whole when pyiceberg opens it."""

    def __init__(self, location: str, check: Check = check_alone) -> None:
        super().__init__(location)
        self._check = check

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
            content = file.all_bytes()
        self._check(content)
        return io.BytesIO(content)


class CheckedFiles(FileIO):  # type: ignore[misc, unused-ignore]
    """Reads and writes as pyiceberg does, and refuses files that take too much memory decoded."""

    def __init__(self, files: FileIO) -> None:
        super().__init__(files.properties)
        self._files = files
        self.check: Check = check_alone

    def new_input(self, location: str) -> IcebergInput:
        """Return a file that can be read."""
        return _CheckedInput(self._files.new_input(location), self.check)

    def new_output(self, location: str) -> IcebergOutput:
        """Return a file that can be written."""
        return self._files.new_output(location)

    def delete(self, location: Any) -> None:
        """Remove a file."""
        self._files.delete(location)


class _CheckedInput(IcebergInput):  # type: ignore[misc, unused-ignore]
    def __init__(self, file: IcebergInput, check: Check) -> None:
        super().__init__(file.location)
        self._file, self._check = file, check

    def __len__(self) -> int:
        return len(self._file)

    def exists(self) -> bool:
        """Return whether the file is there."""
        found: bool = self._file.exists()
        return found

    def open(self, seekable: bool = True) -> Any:
        """Return the bytes of the file. Raises MemoryBudgetError for a file that is too large."""
        refuse_beyond(2 * len(self._file), "a file of the metadata")
        with self._file.open(seekable) as stream:
            content = stream.read()
        self._check(content)
        return io.BytesIO(content)


class _StoredOutput(IcebergOutput):  # type: ignore[misc, unused-ignore]
    """A new file of a store. Its content is in memory until it is closed."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def exists(self) -> bool:
        """Return False: the store itself refuses to write over another file."""
        return False

    def to_input_file(self) -> IcebergInput:
        """Return an input file for the same path."""
        return _StoredInput(self.location)

    def create(self, overwrite: bool = False) -> Any:
        """Return a stream. Its content is written when it is closed without an error."""
        return _Upload(partial(self._write, must_be_new=not overwrite))

    def _write(self, content: bytes, *, must_be_new: bool) -> None:
        from secure_bloom.storage.object_writes import put_object

        put_object(self.location, content, must_be_new=must_be_new)
        self._size = len(content)


class _LocalOutput(_StoredOutput):
    """A new file on a local disk. Its name is unique, so no file is ever replaced."""

    def __init__(self, location: str, places: TablePlaces) -> None:
        super().__init__(location)
        self._path = places.new_path(local_location(location))
        self._like = places.like

    def to_input_file(self) -> IcebergInput:
        """Return an input file for the same path."""
        return _StoredInput(self._path)

    def _write(self, content: bytes, *, must_be_new: bool) -> None:
        del must_be_new
        create_file(self._path, content, like=self._like)
        self._size = len(content)


class _Upload(io.BytesIO):
    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write: Callable[[bytes], None] | None = write

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            # A part of a file is no file.
            self._write = None
        self.close()

    def close(self) -> None:
        """Write the content, once."""
        write, self._write = self._write, None
        if write is not None:
            write(self.getvalue())
        super().close()

    def __del__(self) -> None:
        # Of a stream that was never closed nothing is written.
        self._write = None


def counted_together(files: Any, decoded: DecodedBytes) -> Any:
    """Return a copy of ``files`` that adds the size of each decoded file to ``decoded``.

    It is for a reader that keeps everything it reads.
    """
    found = copy(files)
    found.check = partial(check_decoded_size, decoded=decoded)
    return found


def counted_by_block(files: Any) -> Any:
    """Return a copy of ``files`` that checks each block of a manifest by itself.

    It is for a reader that decodes one block at a time and keeps no decoded entry.
    """
    found = copy(files)
    found.check = check_blocks
    return found


def listed_manifests(snapshot: Any, files: FileIO) -> list[ManifestFile]:
    """Return the manifests of a snapshot.

    Raises FormatError if the list names a manifest twice. The files of that manifest would count
    twice, and a short list could make this package read one manifest any number of times.
    """
    found: list[ManifestFile] = list(snapshot.manifests(files))
    if len({it.manifest_path for it in found}) < len(found):
        raise FormatError("the manifest list of a snapshot names a manifest twice")
    return found


def manifest_entries(
    manifest: ManifestFile, files: FileIO, *, with_deleted: bool = False
) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest one by one, with the fields of deletion vectors.

    pyiceberg's own method leaves out fields that are new in version 3 of the format.
    """
    with AvroFile[ManifestEntry](
        files.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        for entry in reader:
            if with_deleted or entry.status != ManifestEntryStatus.DELETED:
                yield _inherited(entry, manifest)


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    """Return an entry with the numbers that it takes from its manifest.

    Iceberg's specification, "Sequence Number Inheritance".
    """
    # Version 1 has no sequence numbers: all are 0.
    if entry.status == ManifestEntryStatus.ADDED or not manifest.sequence_number:
        if entry.sequence_number is None:
            entry.sequence_number = manifest.sequence_number
        if entry.file_sequence_number is None:
            entry.file_sequence_number = manifest.sequence_number
    if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
        entry.snapshot_id = manifest.added_snapshot_id
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry


_GZIP: Final = b"\x1f\x8b"
#: Parquet and Puffin: delete files, whose readers have checks of their own.
_CHECKED_ELSEWHERE: Final = (b"PAR1", b"PFA1")
_PIECE: Final = 1 << 20
#: What pyiceberg makes of a byte of JSON, of a byte of a record, and of a record of one byte.
_JSON_COST, _BYTE_COST, _RECORD_COST = 4, 12, 1536
#: What pyiceberg makes of an item of a list that has members.
_ITEM_COST, _KEY_AND_VALUE = 200, 2
_WHAT = "a file of the table's metadata"


def check_decoded_size(data: bytes, decoded: DecodedBytes) -> None:
    """Add the decoded size of a metadata file to ``decoded``.

    Raises MemoryBudgetError beyond the budget, and FormatError for a damaged Avro file.
    """
    if data.startswith(MAGIC):
        decoded.add(_avro_size(data))
    elif not data.startswith(_CHECKED_ELSEWHERE):
        text = b"".join(_bounded(_inflated(data), 2)) if data.startswith(_GZIP) else data
        decoded.add(_JSON_COST * json_size(text))


def check_blocks(data: bytes) -> None:
    """Check a manifest whose records are decoded one by one, and forgotten.

    Raises MemoryBudgetError if a block takes more than the budget, and FormatError for damage.
    """
    blocks = AvroBlocks(io.BytesIO(data), lambda _: None)
    cost = max(_BYTE_COST, _cost_of_items(blocks.cost))
    for _, content in blocks:
        # One record may have all bytes of its block.
        refuse_beyond(2 * len(data) + cost * len(content) + _RECORD_COST, _WHAT)


def _bounded(pieces: Iterator[bytes], cost: int) -> Iterator[bytes]:
    """Yield the pieces. Raises MemoryBudgetError if they take too much at ``cost`` a byte."""
    size = 0
    for piece in pieces:
        size += len(piece)
        refuse_beyond(cost * size, _WHAT)
        yield piece


def _avro_size(data: bytes) -> int:
    unpacked = records = 0

    def count(size: int) -> None:
        nonlocal unpacked
        unpacked += size
        refuse_beyond(cost * unpacked, _WHAT)

    blocks = AvroBlocks(io.BytesIO(data), count)
    cost = max(_BYTE_COST, _cost_of_items(blocks.cost))
    for number, _ in blocks:
        records += number
        refuse_beyond(cost * unpacked + _RECORD_COST * records, _WHAT)
    return cost * unpacked + _RECORD_COST * records


def _cost_of_items(cost: AvroCost) -> int:
    """Return an upper bound of the decoded bytes for each encoded byte in lists of structures."""
    sizes = [0]
    for it in cost.lists:
        # Lists of a key and a value become dictionaries.
        if it.item.members not in (0, _KEY_AND_VALUE):
            sizes.append(_ITEM_COST // it.item.least)
        sizes.append(_cost_of_items(it.item))
    return max(sizes)


def _inflated(data: bytes) -> Iterator[bytes]:
    """Yield the text of a gzip file, member by member, in pieces."""
    while data:
        one = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            while piece := one.decompress(data, _PIECE):
                yield piece
                data = one.unconsumed_tail
        except zlib.error:
            raise FormatError("a file of the table's metadata cannot be unpacked") from None
        data = one.unused_data
