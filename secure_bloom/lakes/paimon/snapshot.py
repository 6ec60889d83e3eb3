"""Read the snapshots of a Paimon table: which entries of its manifests are live.

    snapshot/snapshot-N    JSON: baseManifestList, deltaManifestList, indexManifest, schemaId
    manifest/...           Avro: a list names manifests, a manifest has entries of data files

Entries are applied in order. Kind 0 adds a file. Kind 1 deletes the entry with the same
partition, bucket, level, name, extra files, embedded index and external path.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from secure_bloom.errors import FormatError, MissingPathError, PolicyError, located
from secure_bloom.lakes.avro_files import AvroFile, decode, decoding_room
from secure_bloom.lakes.paimon.names import root_of
from secure_bloom.lakes.paimon.schema import number_in, read_json
from secure_bloom.lakes.table_format import milliseconds
from secure_bloom.running.memory_budget import MemoryShare, refuse_beyond
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import files_at_once, join, open_input
from secure_bloom.storage.dispatch import tree_of

SNAPSHOT_FOLDER: Final = "snapshot"
MANIFEST_FOLDER: Final = "manifest"
_NAME = re.compile(r"snapshot-(\d{1,18})")
_SEPARATORS = re.compile(r"[/\\\0]")
#: Manifests of a store that are read before their turn.
_AHEAD = 1_000
ADD, DELETE = 0, 1

Identity: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonEntry:
    """An unchanged entry of a manifest, with the Avro schema of the manifest."""

    record: dict[str, Any] = field(repr=False)
    schema: Any = field(repr=False)

    @property
    def file(self) -> dict[str, Any]:
        """The fields of the data file."""
        found: dict[str, Any] = self.record["_FILE"]
        return found

    @property
    def identity(self) -> Identity:
        """The fields that must be equal in the entry that deletes this entry."""
        file = self.file
        return (
            *self.place,
            tuple(file["_EXTRA_FILES"] or ()),
            file.get("_EMBEDDED_FILE_INDEX"),
        )

    @property
    def place(self) -> Identity:
        """The fields that identify the data file, without its indexes."""
        file = self.file
        return (
            self.record["_PARTITION"],
            self.record["_BUCKET"],
            file["_LEVEL"],
            file["_FILE_NAME"],
            file.get("_EXTERNAL_PATH"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonSnapshot:
    """A snapshot: its document, the manifests that its lists name, and its live entries.

    ``lists`` are the base list and the delta list. ``taken`` has all entries that some manifest
    deletes. A new entry must not equal one of them: readers that ignore the order of entries
    might lose it.
    """

    id: int
    document: Mapping[str, Any] = field(repr=False)
    lists: tuple[AvroFile, ...] = field(repr=False)
    live: Mapping[Identity, PaimonEntry] = field(repr=False)
    taken: frozenset[Identity] = field(repr=False)

    @property
    def schema_id(self) -> int:
        """The number of the table's schema in this snapshot."""
        return number_in(self.document, "schemaId")


def snapshot_numbers(folder: str) -> list[int]:
    """Return the numbers of the snapshots of a table, ascending.

    The folder is listed: the file LATEST in it is only a hint.
    """
    try:
        names = tree_of(folder).level(join(folder, SNAPSHOT_FOLDER), sys.maxsize)[1] or ()
    except MissingPathError:
        # A new table has a schema and no snapshot.
        return []
    return sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))


def snapshot_path(folder: str, number: int) -> str:
    """Return the path of a snapshot's file."""
    return join(join(folder, SNAPSHOT_FOLDER), f"snapshot-{number}")


def latest_snapshot(folder: str) -> PaimonSnapshot | None:
    """Return the latest snapshot of the table in ``folder``, or None for a table without one."""
    numbers = snapshot_numbers(folder)
    return read_snapshot(folder, numbers[-1]) if numbers else None


def snapshot_at(folder: str, timestamp: str | datetime) -> PaimonSnapshot:
    """Return the last snapshot until a time. Raises PolicyError if there is none."""
    wanted = milliseconds(timestamp)
    for number in reversed(snapshot_numbers(folder)):
        document = read_json(snapshot_path(folder, number))
        if number_in(document, "timeMillis") <= wanted:
            return read_snapshot(folder, number)
    raise PolicyError(
        "the table has no snapshot until that time",
        hint="its snapshots may have expired",
        path=folder,
    )


def read_snapshot(folder: str, number: int) -> PaimonSnapshot:
    """Return a snapshot. Raises PolicyError if the table does not have it."""
    path = snapshot_path(folder, number)
    try:
        document = read_json(path)
    except MissingPathError:
        raise PolicyError(
            f"the table has no snapshot {number}", hint="it may have expired", path=folder
        ) from None
    with located(path=path):
        if number_in(document, "id") != number:
            raise FormatError("the snapshot says that it has another number")
        room = decoding_room()
        lists = tuple(
            _read(folder, _name(document, name), room)
            for name in ("baseManifestList", "deltaManifestList")
        )
        live, taken = _merged(_entries(folder, lists, room))
    return PaimonSnapshot(
        id=number, document=document, lists=lists, live=live, taken=frozenset(taken)
    )


def every_entry(folder: str) -> Iterator[PaimonEntry]:
    """Yield the entries of all manifests in the folder of the table, also of old snapshots."""
    for manifest in _manifests(folder, re.compile(r"manifest-(?!list-)")):
        for record in manifest.records:
            _check(record)
            yield PaimonEntry(record=record, schema=manifest.schema)


def every_index_entry(folder: str) -> Iterator[dict[str, Any]]:
    """Yield the entries of the index files of all snapshots, including old snapshots."""
    for manifest in _manifests(folder, re.compile("index-manifest-")):
        yield from manifest.records


def _manifests(folder: str, wanted: re.Pattern[str]) -> Iterator[AvroFile]:
    """Yield the files in the folder of manifests whose names begin with ``wanted``."""
    manifests, room = join(root_of(folder), MANIFEST_FOLDER), decoding_room()
    for name in sorted(tree_of(folder).level(manifests, sys.maxsize)[1] or ()):
        if wanted.match(name):
            yield _read(folder, name, room)


def read_index_manifest(folder: str, snapshot: PaimonSnapshot) -> tuple[dict[str, Any], ...]:
    """Return the entries of a snapshot's index files, for example of deletion vectors."""
    if snapshot.document.get("indexManifest") is None:
        return ()
    name = _name(snapshot.document, "indexManifest")
    return _read(folder, name, decoding_room()).records


def _entries(folder: str, lists: Sequence[AvroFile], room: MemoryShare) -> Iterator[PaimonEntry]:
    names = [_name(record, "_FILE_NAME") for each in lists for record in each.records]
    if len(frozenset(names)) < len(names):
        # Each further time costs a few bytes of the list, and the manifest is read again.
        raise FormatError("the manifest lists of a snapshot name a manifest twice")
    manifests = in_order(
        lambda name: _read(folder, name, room), names, files_at_once([folder]), room=_AHEAD
    )
    for manifest in manifests:
        for record in manifest.records:
            _check(record)
            yield PaimonEntry(record=record, schema=manifest.schema)


def _merged(entries: Iterator[PaimonEntry]) -> tuple[dict[Identity, PaimonEntry], set[Identity]]:
    live: dict[Identity, PaimonEntry] = {}
    taken: set[Identity] = set()
    for entry in entries:
        if entry.record["_KIND"] == ADD:
            live[entry.identity] = entry
        else:
            taken.add(entry.identity)
            live.pop(entry.identity, None)
    return live, taken


#: The fields of an entry that are used here, and their types.
_ENTRY: Final[Mapping[str, type]] = {"_KIND": int, "_PARTITION": bytes, "_BUCKET": int}
_FILE: Final[Mapping[str, type]] = {
    "_FILE_NAME": str,
    "_FILE_SIZE": int,
    "_ROW_COUNT": int,
    "_SCHEMA_ID": int,
    "_LEVEL": int,
    "_EXTRA_FILES": list,
}


def _check(record: dict[str, Any]) -> None:
    """Raise FormatError for an entry without the fields that are used here."""
    file = record.get("_FILE")
    if not isinstance(file, dict):
        raise FormatError("an entry of a manifest has no file")
    for fields, types in ((record, _ENTRY), (file, _FILE)):
        for name, kind in types.items():
            if not isinstance(fields.get(name), kind):
                raise FormatError(
                    f"{name} is missing in an entry of a manifest, or is of another type"
                )
    if record["_KIND"] not in (ADD, DELETE):
        raise FormatError(f"an entry of a manifest is of kind {record['_KIND']}, wanted 0 or 1")
    for name in (file["_FILE_NAME"], *file["_EXTRA_FILES"]):
        plain_name(name)
    if file["_FILE_SIZE"] < 0 or file["_ROW_COUNT"] < 0:
        raise FormatError("an entry of a manifest has a negative size")


def plain_name(name: object) -> str:
    """Return the name of a file. Raises FormatError if it is a path instead."""
    if not isinstance(name, str) or name in ("", ".", "..") or _SEPARATORS.search(name):
        raise FormatError("the metadata of the table name a file by a path")
    return name


def _name(document: Mapping[str, Any], name: str) -> str:
    return plain_name(document.get(name))


def _read(folder: str, name: str, room: MemoryShare) -> AvroFile:
    path = join(join(root_of(folder), MANIFEST_FOLDER), name)
    with located(path=path), open_input(path) as file:
        refuse_beyond(file.size, "a manifest")
        return decode(file.all_bytes(), room)
