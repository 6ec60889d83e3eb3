"""Commit indexes to a Paimon table: a new snapshot lists each index with its unchanged data file.

    manifest        deletes the entries of the files, and adds the same entries with their index
    manifest list   base: all manifests of the snapshot before; delta: the new manifest
    snapshot-N      JSON of kind COMPACT, created only if no other writer has created it

A COMPACT snapshot has no new rows, so streaming readers skip it. Deleted entries come first: when
Paimon expires snapshots, it keeps a data file that a later entry adds again. If another writer was
first, the run checks again which entries are still live, and tries the next number. Unknown fields
are copied.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from secure_bloom.errors import (
    FileChangedError,
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
)
from secure_bloom.lakes.avro_files import AvroFile, encode
from secure_bloom.lakes.paimon.names import root_of
from secure_bloom.lakes.paimon.rows import bounds, decode_row
from secure_bloom.lakes.paimon.schema import AtomicType
from secure_bloom.lakes.paimon.snapshot import (
    ADD,
    DELETE,
    MANIFEST_FOLDER,
    SNAPSHOT_FOLDER,
    Identity,
    PaimonEntry,
    PaimonSnapshot,
    latest_snapshot,
    snapshot_path,
)
from secure_bloom.lakes.paimon.table import INDEX_SUFFIX
from secure_bloom.storage import join, open_input, replace_tail
from secure_bloom.storage.commit_files import is_committed
from secure_bloom.storage.dispatch import create_file, remove_file
from secure_bloom.storage.paths import without_links

KIND: Final = "COMPACT"
#: The identifier of a commit that belongs to no stream: the largest long of Java.
_BATCH: Final = (1 << 63) - 1
#: The most times that other writers may be first; each time they have written a snapshot.
_ATTEMPTS = 100
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_VERSION = 2
_UNKNOWN: Final = (
    "look at the table's snapshots; the new files of this run stay until Paimon's removal of "
    "orphan files"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIndex:
    """The new index of a data file: the name of a file beside it, or the ``embedded`` bytes.

    ``entry`` is the entry of the data file for which it was built.
    """

    entry: PaimonEntry
    name: str | None
    embedded: bytes | None = field(default=None, repr=False)

    def added(self) -> dict[str, Any]:
        """Return the entry that adds the data file with this index."""
        file = dict(self.entry.file)
        others = [name for name in file["_EXTRA_FILES"] if not name.endswith(INDEX_SUFFIX)]
        file["_EXTRA_FILES"] = others if self.name is None else [*others, self.name]
        file["_EMBEDDED_FILE_INDEX"] = self.embedded
        return {**self.entry.record, "_KIND": ADD, "_FILE": file}

    def taken(self) -> dict[str, Any]:
        """Return the entry that deletes the data file without the new index."""
        return {**self.entry.record, "_KIND": DELETE}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedIndexes:
    """The result of a commit: the snapshot after it, and the indexes that it has.

    ``snapshot`` is None if no entry was live any more, and nothing was written.
    """

    snapshot: int | None
    indexes: tuple[NewIndex, ...]


def commit(
    folder: str,
    snapshot: PaimonSnapshot,
    indexes: Sequence[NewIndex],
    partition_types: Sequence[AtomicType],
) -> CommittedIndexes:
    """List the indexes in a new snapshot, as far as their entries are still live.

    Raises FileChangedError if other writers are always first, UnfinishedWriteError if it is unknown
    whether the snapshot is there.  Before any other error nothing was changed.
    """
    pause = _FIRST_PAUSE
    latest: PaimonSnapshot | None = snapshot
    for _ in range(_ATTEMPTS):
        live = (
            ()
            if latest is None
            else tuple(
                it
                for it in indexes
                # An entry that was taken away once must not come back: some readers would lose it.
                if it.entry.identity in latest.live and identity(it) not in latest.taken
            )
        )
        # A snapshot without a change would only make others try again.
        if latest is None or not live:
            return CommittedIndexes(snapshot=None, indexes=())
        plan = _plan(latest, live, partition_types)
        if _is_published(folder, latest, plan):
            _update_hint(folder, latest.id + 1)
            return CommittedIndexes(snapshot=latest.id + 1, indexes=live)
        # The pause is random: of two writers that were too late together, one tries again earlier.
        time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
        pause = min(2 * pause, _LONGEST_PAUSE)
        latest = latest_snapshot(folder)
    raise FileChangedError(
        f"other writers were first {_ATTEMPTS} times, so nothing was committed",
        hint="run again when fewer programs write to the table",
        path=folder,
    )


def _is_published(folder: str, snapshot: PaimonSnapshot, plan: _CommitPlan) -> bool:
    """Write the manifests and create the next snapshot.

    Return False if another writer has created that snapshot. The new manifests are removed only if
    the snapshot that names them certainly does not exist.
    """
    written: list[str] = []
    root, like = root_of(folder), snapshot_path(folder, snapshot.id)
    try:
        for name, content in plan.files.items():
            path = without_links(join(join(root, MANIFEST_FOLDER), name), root)
            written.append(path)
            create_file(path, content, like=like)
        path = without_links(snapshot_path(folder, snapshot.id + 1), root)
        if is_committed(path, plan.snapshot, like=like, hint=_UNKNOWN):
            return True
    except UnfinishedWriteError:
        raise  # the snapshot may be there, so what it names must stay
    except SecureBloomError:
        remove(written)
        raise
    remove(written)
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommitPlan:
    """The files of a commit in the folder of manifests, and the content of its snapshot."""

    files: Mapping[str, bytes]
    snapshot: bytes


def _plan(
    snapshot: PaimonSnapshot, indexes: Sequence[NewIndex], types: Sequence[AtomicType]
) -> _CommitPlan:
    run = uuid.uuid4()
    files: dict[str, bytes] = {}
    metas: list[dict[str, Any]] = []
    fields = _fields(united(snapshot.lists))
    for number, (schema, group) in enumerate(_by_schema(indexes)):
        name = f"manifest-{run}-{number}"
        files[name] = encode(schema, [*(it.taken() for it in group), *(it.added() for it in group)])
        meta = _meta(name, len(files[name]), group, types, snapshot.schema_id)
        metas.append(_fitted(meta, fields))
    base, delta = snapshot.lists
    # Records of an older list may lack fields that the newer one has.
    before = [_fitted(record, fields) for record in (*base.records, *delta.records)]
    lists = f"manifest-list-{run}-0", f"manifest-list-{run}-1"
    schema = united(snapshot.lists)
    files |= {lists[0]: encode(schema, before), lists[1]: encode(schema, metas)}
    document = _document(snapshot, lists, [len(files[name]) for name in lists])
    return _CommitPlan(files=files, snapshot=json.dumps(document, separators=(",", ":")).encode())


def _by_schema(indexes: Sequence[NewIndex]) -> list[tuple[Any, list[NewIndex]]]:
    """Return the indexes by the schema of their entries: a manifest has one schema."""
    groups: dict[str, tuple[Any, list[NewIndex]]] = {}
    known: dict[int, str] = {}
    for it in indexes:
        # Entries of one manifest share their schema, so it is written as a text once.
        schema = it.entry.schema
        if (text := known.get(id(schema))) is None:
            text = known[id(schema)] = json.dumps(schema)
        groups.setdefault(text, (schema, []))[1].append(it)
    return list(groups.values())


def _meta(
    name: str, size: int, indexes: Sequence[NewIndex], types: Sequence[AtomicType], schema_id: int
) -> dict[str, Any]:
    """Return the record of a manifest in a list. Its bounds cover all its entries."""
    records = [it.entry.record for it in indexes]
    rows = [decode_row(each, types) for each in {record["_PARTITION"] for record in records}]
    least, greatest, nulls = bounds(rows, types)
    buckets = [record["_BUCKET"] for record in records]
    levels = [record["_FILE"]["_LEVEL"] for record in records]
    return {
        "_VERSION": _VERSION,
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_NUM_ADDED_FILES": len(records),
        "_NUM_DELETED_FILES": len(records),
        "_PARTITION_STATS": {
            "_MIN_VALUES": least,
            "_MAX_VALUES": greatest,
            "_NULL_COUNTS": nulls,
        },
        "_SCHEMA_ID": schema_id,
        "_MIN_BUCKET": min(buckets),
        "_MAX_BUCKET": max(buckets),
        "_MIN_LEVEL": min(levels),
        "_MAX_LEVEL": max(levels),
        **_row_ids([record["_FILE"] for record in records]),
    }


def _row_ids(files: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the bounds of row ids, or {} if a file has none."""
    firsts = [file.get("_FIRST_ROW_ID") for file in files]
    if None in firsts:
        return {}
    ends = [file["_FIRST_ROW_ID"] + file["_ROW_COUNT"] - 1 for file in files]
    return {"_MIN_ROW_ID": min(it for it in firsts if it is not None), "_MAX_ROW_ID": max(ends)}


def _record(schema: Any) -> dict[str, Any]:
    """Return the record of a schema, which may be in a union with null."""
    for each in schema if isinstance(schema, list) else [schema]:
        if isinstance(each, dict) and each.get("type") == "record":
            return each
    raise UnsupportedFeatureError("the Avro schema of a manifest list has no record type")


def _fields(schema: Any) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in _record(schema)["fields"]}


def united(lists: Iterable[AvroFile]) -> Any:
    """Return the schema with the most fields, which must include the fields of all lists.

    Raises UnsupportedFeatureError if another list has fields that it lacks.
    """
    schemas = sorted((each.schema for each in lists), key=lambda it: len(_fields(it)))
    widest = schemas[-1]
    for schema in schemas:
        if missing := sorted(_fields(schema).keys() - _fields(widest).keys()):
            raise UnsupportedFeatureError(
                f"two manifest lists have different fields: one lacks {', '.join(missing)}",
                hint="compact the table's manifests with the table's own engine",
            )
    return widest


def _fitted(record: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with exactly these fields. A field that it lacks is null."""
    lacking = [
        name
        for name, kind in fields.items()
        if name not in record and not (isinstance(kind, list) and "null" in kind)
    ]
    if lacking:
        raise UnsupportedFeatureError(
            f"a list of manifests has fields that are not known here: {', '.join(lacking)}",
            hint="use a newer version of secure-bloom",
        )
    return {name: record.get(name) for name in fields}


#: Fields of a snapshot that describe its own commit, and not the state of the table.
_OF_A_COMMIT: Final = (
    "changelogManifestList",
    "changelogManifestListSize",
    "changelogRecordCount",
    "properties",
    "writerVersion",
)


def _document(
    snapshot: PaimonSnapshot, lists: Sequence[str], sizes: Sequence[int]
) -> dict[str, Any]:
    """Return the next snapshot: the state of the one before, with other manifests."""
    before = snapshot.document
    document = {name: None if name in _OF_A_COMMIT else value for name, value in before.items()}
    document |= {
        "id": snapshot.id + 1,
        "baseManifestList": lists[0],
        "deltaManifestList": lists[1],
        "commitUser": str(uuid.uuid4()),
        "commitIdentifier": _BATCH,
        "commitKind": KIND,
        # Time travel looks for the last snapshot until a time.
        "timeMillis": max(time.time_ns() // 1_000_000, int(before.get("timeMillis") or 0)),
        "deltaRecordCount": 0,
    }
    if "uuid" in before:
        document["uuid"] = str(uuid.uuid4())
    for name, size in zip(("baseManifestListSize", "deltaManifestListSize"), sizes, strict=True):
        if name in before:
            document[name] = size
    return {name: value for name, value in document.items() if value is not None or name in before}


def _update_hint(folder: str, number: int) -> None:
    """Write the number of the newest snapshot into LATEST, which is only a hint."""
    # Through a link it would be the hint of another table.
    path = without_links(join(join(folder, SNAPSHOT_FOLDER), "LATEST"), folder)
    with suppress(SecureBloomError, ValueError), open_input(path) as file:
        if int(file.all_bytes()) < number:
            replace_tail(file, 0, [str(number).encode()])


def remove(paths: Iterable[str]) -> None:
    """Remove new files that no snapshot names."""
    for path in paths:
        # One that stays is removed by Paimon's own removal of orphan files.
        with suppress(SecureBloomError):
            remove_file(path)


def identity(index: NewIndex) -> Identity:
    """Return the identity that the data file gets with its index."""
    return PaimonEntry(record=index.added(), schema=index.entry.schema).identity
