"""Build the snapshot that replaces old data files by new ones.

Iceberg's spec, "Snapshots" and "Manifests":

- Manifests that name an old file are written again, small ones of a spec as one: their other
  entries as EXISTING, the old files as DELETED.  All other manifests, and those of delete files,
  are referenced unchanged.
- New files get one manifest for each partition spec.  An entry differs from the old one only in
  path and size.  It keeps its data sequence number, by which equality deletes apply to it.
- The operation is ``replace``: the same rows in other files.  Spark's streaming readers skip
  ``replace`` snapshots, while they would stop at an ``overwrite``.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
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
from secure_bloom.lakes.iceberg.live_files import Manifests, group_by_spec
from secure_bloom.storage import is_object_uri
from secure_bloom.storage.open_folder import open_folder_of

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
_JOINED_BYTES: Final = 8 * 1024 * 1024
_CODEC_PROPERTY: Final = "write.avro.compression-codec"
_DEFAULT_CODEC: Final = "gzip"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataFile:
    """A live data file, and the new file that replaces it.

    ``new`` is the location for the metadata, ``opened`` is the path that opens the file here.
    """

    old: ManifestEntry
    new: str
    opened: str
    size: int

    @property
    def path(self) -> str:
        """The old file's path in the manifests."""
        return str(self.old.data_file.file_path)


@dataclass(slots=True)
class SnapshotWriter:
    """Writes manifests and the manifest list for one attempt at a commit.

    ``written`` are the locations of its files, which a failed attempt removes.
    """

    table: CommitTable
    manifests: Manifests
    snapshot_id: int
    written: list[str] = field(default_factory=list)
    _uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def changes(
        self, replacements: Sequence[NewDataFile], properties: Mapping[str, str]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the requirements and the updates that the catalog is asked for."""
        snapshot = self._snapshot(replacements, properties)
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

    def _snapshot(
        self, replacements: Sequence[NewDataFile], properties: Mapping[str, str]
    ) -> Snapshot:
        head, metadata = self.table.parent, self.table.metadata
        number = metadata.next_sequence_number()
        location = self._new_file(f"snap-{self.snapshot_id}-1-{self._uuid}.avro")
        with write_manifest_list(
            metadata.format_version,
            self.table.io.new_output(location),
            self.snapshot_id,
            head.snapshot_id,
            number,
            self._codec,
        ) as writer:
            writer.add_manifests(list(self._manifest_files(replacements)))
        return Snapshot(
            **{
                "snapshot-id": self.snapshot_id,
                "parent-snapshot-id": head.snapshot_id,
                "sequence-number": number,
                # Later than the snapshot before, whatever the clock says.
                "timestamp-ms": max(int(time.time() * 1000), head.timestamp_ms + 1),
                "manifest-list": location,
                "schema-id": metadata.current_schema_id,
                "summary": summary(head, replacements, properties),
            }
        )

    def _manifest_files(self, replacements: Sequence[NewDataFile]) -> Iterator[ManifestFile]:
        by_path = {it.path: it for it in replacements}
        for spec_id, entries in group_by_spec([it.old for it in replacements]).items():
            yield self._written_manifest(
                spec_id,
                [_added(by_path[it.data_file.file_path], self.snapshot_id) for it in entries],
            )
        head, touched = self.table.parent, list[ManifestFile]()
        for manifest in self.manifests.of(head, ManifestContent.DATA):
            entries = self.manifests.entries(manifest)
            if any(entry.data_file.file_path in by_path for entry in entries):
                touched.append(manifest)
            else:
                yield manifest
        for several in _joined(touched):
            kept = [
                _kept(entry, by_path, self.snapshot_id)
                for manifest in several
                for entry in self.manifests.entries(manifest)
            ]
            yield self._written_manifest(several[0].partition_spec_id, kept)
        yield from self.manifests.of(head, ManifestContent.DELETES)

    def _written_manifest(self, spec_id: int, entries: Sequence[ManifestEntry]) -> ManifestFile:
        spec = spec_of(spec_id, self.table)
        location = self._new_file(f"{self._uuid}-m{len(self.written)}.avro")
        with write_manifest(
            self.table.metadata.format_version,
            spec,
            schema_of(spec, self.table),
            self.table.io.new_output(location),
            self.snapshot_id,
            self._codec,
        ) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _new_file(self, name: str) -> str:
        location = str(self.table.table.location_provider().new_metadata_location(name))
        if not is_object_uri(location):
            # pyiceberg writes the file, and would follow a link.
            with open_folder_of(self.table.new_path(location), make=True):
                pass
        # Noted first: a write that fails halfway may leave a part.
        self.written.append(location)
        return location

    @property
    def _codec(self) -> Any:
        return self.table.metadata.properties.get(_CODEC_PROPERTY, _DEFAULT_CODEC)


def _joined(manifests: Iterable[ManifestFile]) -> Iterator[list[ManifestFile]]:
    """Yield manifests of one spec that become one, of about the size that writers aim at.

    Many appends leave many small manifests, and each one that is written takes several requests.
    """
    open_ones: dict[int, list[ManifestFile]] = {}
    for manifest in manifests:
        several = open_ones.setdefault(manifest.partition_spec_id, [])
        several.append(manifest)
        if sum(it.manifest_length for it in several) >= _JOINED_BYTES:
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
        if wanted <= set(schema._lazy_id_to_field):
            return schema
    raise UnsupportedFeatureError(
        f"no schema of the table has the columns of its partition spec {spec.spec_id}",
        path=table.path,
    )


def _added(replacement: NewDataFile, snapshot_id: int) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED,
        snapshot_id=snapshot_id,
        sequence_number=replacement.old.sequence_number,
        # The catalog assigns the file sequence number: the entry inherits it.
        file_sequence_number=None,
        data_file=_moved(replacement),
    )


def _moved(replacement: NewDataFile) -> DataFile:
    """Return the old data file's record with a new path and size, and nothing else changed."""
    old = replacement.old.data_file
    new = DataFile(*(old[position] for position in range(len(old))))
    new[_PATH], new[_SIZE] = replacement.new, replacement.size
    new.spec_id = old.spec_id
    return new


#: Positions in pyiceberg's record of a data file.
_PATH: Final = 1
_SIZE: Final = 5


def _kept(
    entry: ManifestEntry, replaced: Mapping[str, NewDataFile], snapshot_id: int
) -> ManifestEntry:
    is_replaced = entry.data_file.file_path in replaced
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.DELETED if is_replaced else ManifestEntryStatus.EXISTING,
        # A deleted entry names the snapshot that deleted it, an existing one that which added it.
        snapshot_id=snapshot_id if is_replaced else entry.snapshot_id,
        sequence_number=entry.sequence_number,
        file_sequence_number=entry.file_sequence_number,
        data_file=entry.data_file,
    )


def summary(
    head: Snapshot, replacements: Sequence[NewDataFile], properties: Mapping[str, str]
) -> Summary:
    """Return the summary of a snapshot: what was replaced, and the totals afterwards."""
    before = dict(head.summary.additional_properties) if head.summary else {}
    totals = {name: before[name] for name in _TOTALS if name in before}
    if "total-files-size" in totals:
        grown = int(totals["total-files-size"]) + size_difference(replacements)
        totals["total-files-size"] = str(grown)
    return Summary(operation=Operation.REPLACE, **{**properties, **metrics(replacements), **totals})


def metrics(replacements: Sequence[NewDataFile]) -> dict[str, str]:
    """Return what a snapshot replaces, by the names in Iceberg's summaries."""
    files = len(replacements)
    rows = sum(it.old.data_file.record_count for it in replacements)
    partitions = {
        (it.old.data_file.spec_id, str(it.old.data_file.partition)) for it in replacements
    }
    removed = sum(it.old.data_file.file_size_in_bytes for it in replacements)
    return {
        "added-data-files": str(files),
        "deleted-data-files": str(files),
        "added-records": str(rows),
        "deleted-records": str(rows),
        "added-files-size": str(sum(it.size for it in replacements)),
        "removed-files-size": str(removed),
        "changed-partition-count": str(len(partitions)),
    }


def size_difference(replacements: Sequence[NewDataFile]) -> int:
    """Return by how many bytes the new files are larger than the old ones."""
    return sum(it.size - it.old.data_file.file_size_in_bytes for it in replacements)
