"""Build the snapshot that replaces old data files by new ones.

Iceberg's spec, "Snapshots" and "Manifests":

- Manifests that name an old file are written again: the old files as DELETED, all other entries as
  EXISTING.  Small manifests of one partition spec are merged.  All other manifests are referenced
  unchanged.
- New files get one manifest for each partition spec.  An entry differs from the old one in path
  and size, and keeps its data sequence number, by which equality deletes apply to it.  If pages
  have moved, it has no sizes of columns and no offsets of row groups.
- Position deletes name a data file by its path.  A new data file gets a position delete file of
  its own, with the data sequence number of the old ones.  An old position delete file is removed
  from the snapshot when it names no live data file any more.
- Bounds of secret columns are removed from the entries of the run's files and of deleted files.
- The operation is ``replace``: the same rows in other files.  Spark's streaming readers skip
  ``replace`` snapshots, while they would stop at an ``overwrite``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import chain
from typing import Any, Final

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
)

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.kept_entries import KeptEntry, KeptFile
from secure_bloom.lakes.iceberg.live_files import DataPaths, Manifests, group_by_spec
from secure_bloom.lakes.iceberg.manifest_writers import manifest_writer
from secure_bloom.lakes.iceberg.position_deletes import NewDeletes

#: Totals of a summary; all but the size stay as they are.
_TOTALS: Final = (
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
)
#: The size at which a manifest is full: the default of commit.manifest.target-size-bytes.
_FULL_BYTES: Final = 8 * 1024 * 1024
_CODEC_PROPERTY: Final = "write.avro.compression-codec"
_DEFAULT_CODEC: Final = "gzip"
#: In a summary: data files that stay, and whose bounds of secret columns have left the manifests.
UPDATED_METRICS: Final = "secure-bloom.updated-metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """What the snapshots of a run do to data files.

    ``properties`` go into the summaries. ``secret`` has the ids of the columns whose bounds are
    removed from the manifests. Bounds of columns that are not ``known`` are removed too, because
    no schema names them. ``moves_pages`` is whether the pages of a new file are at other offsets.
    """

    properties: Mapping[str, str]
    secret: frozenset[int] = frozenset()
    known: frozenset[int] | None = None
    moves_pages: bool = False

    @classmethod
    def of(cls, verb: str, **properties: str) -> Rewrite:
        """Return the rewrite of a verb, with properties that name columns and no values."""
        given = {"version": version("secure-bloom"), "operation": verb, **properties}
        return cls(properties={f"secure-bloom.{name}": it for name, it in given.items()})

    def shows(self, file: DataFile | KeptFile) -> bool:
        """Return whether an entry has bounds of secret columns."""
        # A run without secret columns looks at the bounds of no file.
        hides = bool(self.secret) or self.known is not None
        return hides and any(
            self.is_secret(it) for position in _BOUNDS for it in file[position] or ()
        )

    def is_secret(self, number: int) -> bool:
        """Return whether the bounds of a column are removed from the manifests."""
        return number in self.secret or (self.known is not None and number not in self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataFile:
    """A live data file, and the new file that replaces it.

    ``new`` is the location for the metadata, ``opened`` is the path that opens the file here.
    ``deletes`` are its position deletes.
    """

    old: KeptEntry
    new: str
    opened: str
    size: int
    deletes: NewDeletes | None = None

    @property
    def path(self) -> str:
        """The old file's path in the manifests."""
        return str(self.old.data_file.file_path)


# Without slots, for the cached property.
@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes of one snapshot.

    ``restated`` are data files that stay, but whose entries lose the bounds of secret columns.
    """

    rewrite: Rewrite
    replacements: tuple[NewDataFile, ...]
    restated: frozenset[str] = frozenset()

    @cached_property
    def by_path(self) -> Mapping[str, NewDataFile]:
        """The replacements, by the paths of the old files."""
        return {it.path: it for it in self.replacements}

    def touches(self, entry: KeptEntry) -> bool:
        """Return whether the manifest of an entry of a data file must be written again."""
        path = entry.data_file.file_path
        if entry.status == ManifestEntryStatus.DELETED:
            return self.rewrite.shows(entry.data_file)
        return path in self.by_path or (
            path in self.restated and self.rewrite.shows(entry.data_file)
        )


@dataclass(slots=True)
class SnapshotWriter:
    """Writes manifests and the manifest list for one attempt at a commit.

    ``written`` are the locations of its files, which a failed attempt removes.
    """

    table: CommitTable
    manifests: Manifests
    snapshot_id: int
    changes: Changes
    written: list[str] = field(default_factory=list)
    _uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def changes_anything(self) -> bool:
        """Return whether the new snapshot would differ from the head."""
        head = self.table.head
        return head is not None and any(
            self.changes.touches(entry)
            for content in (ManifestContent.DATA, ManifestContent.DELETES)
            for manifest in self.manifests.of(head, content)
            for entry in self.manifests.all_entries(manifest)
        )

    def requests(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Write the snapshot. Return the requirements and the updates to ask the catalog for."""
        snapshot = self._snapshot()
        ref = self.table.metadata.refs[self.table.branch]
        updates = (
            AddSnapshotUpdate(snapshot=snapshot),
            # How long a branch keeps its snapshots is a part of the same record.
            SetSnapshotRefUpdate(
                ref_name=self.table.branch,
                type="branch",
                snapshot_id=snapshot.snapshot_id,
                max_ref_age_ms=ref.max_ref_age_ms,
                max_snapshot_age_ms=ref.max_snapshot_age_ms,
                min_snapshots_to_keep=ref.min_snapshots_to_keep,
            ),
        )
        requirements = (
            AssertTableUUID(uuid=self.table.metadata.table_uuid),
            AssertRefSnapshotId(
                **{"ref": self.table.branch, "snapshot-id": snapshot.parent_snapshot_id}
            ),
            # The snapshot names it, and a schema may be removed once it is not the current one.
            AssertCurrentSchemaId(**{"current-schema-id": self.table.metadata.current_schema_id}),
        )
        return requirements, updates

    def _snapshot(self) -> Snapshot:
        head, metadata = self.table.parent, self.table.metadata
        number = metadata.next_sequence_number()
        location = self._new_file(f"snap-{self.snapshot_id}-1-{self._uuid}.avro")
        withdrawn = self._withdrawn()
        with write_manifest_list(
            metadata.format_version,
            self.table.io.new_output(location),
            self.snapshot_id,
            head.snapshot_id,
            number,
            self._codec,
        ) as writer:
            writer.add_manifests([*self._data_manifests(), *self._delete_manifests(withdrawn)])
        return Snapshot(
            **{
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": head.snapshot_id,
                "sequence-number": number,
                # Later than the snapshot before, whatever the clock says.
                "timestamp-ms": max(int(time.time() * 1000), head.timestamp_ms + 1),
                "manifest-list": location,
                "schema-id": metadata.current_schema_id,
                "summary": summary(head, self.changes, tuple(withdrawn.values())),
            }
        )

    def _withdrawn(self) -> dict[str, KeptEntry]:
        """Return the position delete files that name no live data file after the commit."""
        old = {
            entry.data_file.file_path: entry
            for it in self.changes.replacements
            for entry in (it.deletes.old if it.deletes else ())
        }
        live = self.manifests.live_paths(self.table.parent) if old else frozenset[str]()
        staying = DataPaths(live.difference(self.changes.by_path))
        return {
            path: entry
            for path, entry in old.items()
            if not self.manifests.named_paths(entry, staying)
        }

    def _data_manifests(self) -> Iterator[ManifestFile]:
        """Yield the manifests of data files: the new files', the changed ones, all others."""
        by_spec: dict[int, list[NewDataFile]] = {}
        for it in self.changes.replacements:
            by_spec.setdefault(it.old.data_file.spec_id, []).append(it)
        for spec_id, replaced in by_spec.items():
            # An entry is made when it is written: all of them would take much more than the old.
            new = (
                self._added(_moved(it, self.changes.rewrite), it.old.sequence_number)
                for it in replaced
            )
            yield from self._written_manifests(ManifestContent.DATA, spec_id, new)
        touched = list[ManifestFile]()
        for manifest in self.manifests.of(self.table.parent, ManifestContent.DATA):
            if any(map(self.changes.touches, self.manifests.all_entries(manifest))):
                touched.append(manifest)
            else:
                yield manifest
        for several in _joined(touched):
            kept = (
                self._kept(entry, is_gone=entry.data_file.file_path in self.changes.by_path)
                for manifest in several
                for entry in self.manifests.entries(manifest)
            )
            spec_id = several[0].partition_spec_id
            yield from self._written_manifests(ManifestContent.DATA, spec_id, kept)

    def _delete_manifests(self, withdrawn: Mapping[str, KeptEntry]) -> Iterator[ManifestFile]:
        """Yield the manifests of delete files."""
        deletes = [it.deletes for it in self.changes.replacements if it.deletes]
        new = [self._added(it.data_file, it.sequence_number) for it in deletes]
        for spec_id, of_spec in group_by_spec(new).items():
            yield from self._written_manifests(ManifestContent.DELETES, spec_id, iter(of_spec))
        for manifest in self.manifests.of(self.table.parent, ManifestContent.DELETES):
            every = self.manifests.all_entries(manifest)
            if not any(
                it.data_file.file_path in withdrawn or self.changes.touches(it) for it in every
            ):
                yield manifest
                continue
            kept = (
                self._kept(entry, is_gone=entry.data_file.file_path in withdrawn)
                for entry in self.manifests.entries(manifest)
            )
            yield from self._written_manifests(
                ManifestContent.DELETES, manifest.partition_spec_id, kept
            )

    def _added(self, file: DataFile, sequence_number: int | None) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self.snapshot_id,
            sequence_number=sequence_number,
            # The catalog assigns the file sequence number: the entry inherits it.
            file_sequence_number=None,
            data_file=self._stated(file),
        )

    def _kept(self, entry: KeptEntry, *, is_gone: bool) -> ManifestEntry:
        file = entry.data_file.whole()
        is_of_run = is_gone or file.file_path in self.changes.restated
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if is_gone else ManifestEntryStatus.EXISTING,
            # A deleted entry names the snapshot that deleted it, an existing one that which added
            # it.
            snapshot_id=self.snapshot_id if is_gone else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=self._stated(file) if is_of_run else file,
        )

    def _stated(self, file: DataFile) -> DataFile:
        """Return the record of a file of this run, without the bounds of secret columns."""
        rewrite = self.changes.rewrite
        if rewrite.shows(file):
            for position in _BOUNDS:
                bounds = (file[position] or {}).items()
                file[position] = {it: value for it, value in bounds if not rewrite.is_secret(it)}
        return file

    def _written_manifests(
        self, content: ManifestContent, spec_id: int, entries: Iterator[ManifestEntry]
    ) -> Iterator[ManifestFile]:
        """Write entries into manifests of about the usual size. Yield the manifests."""
        spec = spec_of(spec_id, self.table)
        for first in entries:
            location = self._new_file(f"{self._uuid}-m{len(self.written)}.avro")
            with manifest_writer(
                content,
                self.table.metadata.format_version,
                spec,
                schema_of(spec, self.table),
                self.table.io.new_output(location),
                self.snapshot_id,
                self._codec,
            ) as writer:
                for entry in chain([first], entries):
                    writer.add_entry(entry)
                    if writer.tell() >= _FULL_BYTES:
                        break
            yield writer.to_manifest_file()

    def _new_file(self, name: str) -> str:
        location = str(self.table.table.location_provider().new_metadata_location(name))
        # Noted first: a write that fails halfway may leave a part.
        self.written.append(location)
        return location

    @property
    def _codec(self) -> Any:
        return self.table.metadata.properties.get(_CODEC_PROPERTY, _DEFAULT_CODEC)


def _joined(manifests: Iterable[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Yield lists of manifests of one partition spec. Each list becomes one manifest of usual size.

    Many appends leave many small manifests, and writing a manifest takes several requests.
    """
    open_ones: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        several = open_ones.setdefault(manifest.partition_spec_id, [])
        several.append(manifest)
        if sum(it.manifest_length for it in several) >= _FULL_BYTES:
            yield open_ones.pop(manifest.partition_spec_id)
    yield from open_ones.values()


def spec_of(spec_id: int, table: CommitTable) -> PartitionSpec:
    """Return a partition spec of the table.

    Raises UnsupportedFeatureError if it was removed although data files use it.
    """
    found: PartitionSpec | None = table.metadata.specs().get(spec_id)
    if found is None:
        raise UnsupportedFeatureError(
            f"the table has lost the partition spec {spec_id} of its data files", path=table.path
        )
    return found


def schema_of(spec: PartitionSpec, table: CommitTable) -> Schema:
    """Return the newest schema that has all columns of a partition spec.

    The types of partition values come from these columns, and the current schema may have dropped
    one.
    """
    wanted = {part.source_id for part in spec.fields}
    schemas = table.metadata.schemas
    newest = sorted(schemas, key=lambda it: it.schema_id, reverse=True)
    for schema in (table.metadata.schema(), *newest):
        if wanted <= index_by_id(schema).keys():
            return schema
    raise UnsupportedFeatureError(
        f"no schema of the table has the columns of its partition spec {spec.spec_id}",
        path=table.path,
    )


def _moved(replacement: NewDataFile, rewrite: Rewrite) -> DataFile:
    """Return the record of the new file: the old file's record with the changed fields."""
    new = replacement.old.data_file.whole()
    new[_PATH], new[_SIZE] = replacement.new, replacement.size
    if rewrite.moves_pages:
        # Of the old pages.  Offsets that are wrong would make engines leave out row groups.
        new[_COLUMN_SIZES] = new[_SPLIT_OFFSETS] = None
    return new


#: Positions in pyiceberg's record of a data file.
_PATH: Final = 1
_SIZE: Final = 5
_COLUMN_SIZES: Final = 6
_BOUNDS: Final = (10, 11)
_SPLIT_OFFSETS: Final = 13


def summary(head: Snapshot, changed: Changes, withdrawn: Sequence[KeptEntry]) -> Summary:
    """Return the summary of a snapshot: what was replaced, and the totals afterwards.

    ``withdrawn`` are delete files that leave the table.
    """
    before = dict(head.summary.additional_properties) if head.summary else {}
    new = [it.deletes.data_file for it in changed.replacements if it.deletes]
    old = [it.data_file for it in withdrawn]
    rows = sum(it.record_count for it in new), sum(it.record_count for it in old)
    grown = {
        "total-files-size": size_difference(changed.replacements)
        + sum(it.file_size_in_bytes for it in new)
        - sum(it.file_size_in_bytes for it in old),
        "total-delete-files": len(new) - len(old),
        "total-position-deletes": rows[0] - rows[1],
    }
    totals = {
        name: str(int(before[name]) + grown.get(name, 0)) for name in _TOTALS if name in before
    }
    counts = {
        "added-delete-files": len(new),
        "added-position-delete-files": len(new),
        "added-position-deletes": rows[0],
        "removed-delete-files": len(old),
        "removed-position-delete-files": len(old),
        "removed-position-deletes": rows[1],
    }
    deletes = {name: str(count) for name, count in counts.items() if count}
    return Summary(
        operation=Operation.REPLACE,
        **{**changed.rewrite.properties, **metrics(changed), **deletes, **totals},
    )


def metrics(changed: Changes) -> dict[str, str]:
    """Return what a snapshot changes, by the names in Iceberg's summaries."""
    replaced = changed.replacements
    rows = sum(it.old.data_file.record_count for it in replaced)
    partitions = {(it.old.data_file.spec_id, str(it.old.data_file.partition)) for it in replaced}
    counts = {
        "added-data-files": len(replaced),
        "deleted-data-files": len(replaced),
        "added-records": rows,
        "deleted-records": rows,
        "added-files-size": sum(it.size for it in replaced),
        "removed-files-size": sum(it.old.data_file.file_size_in_bytes for it in replaced),
        "changed-partition-count": len(partitions),
    }
    restated = {UPDATED_METRICS: len(changed.restated)} if changed.restated else {}
    return {name: str(count) for name, count in {**counts, **restated}.items()}


def size_difference(replacements: Sequence[NewDataFile]) -> int:
    """Return the size of the new files less the size of the old files, in bytes."""
    return sum(it.size - it.old.data_file.file_size_in_bytes for it in replacements)
