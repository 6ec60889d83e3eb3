"""The target of a run over an Iceberg table: new data files, and snapshots that name them.

A table is refused if its metadata must show values of columns that get a key:

    partition values    in manifests, in the summaries of manifest lists, and in paths
    delete files        values of columns in clear: those of equality deletes, and the deleted
                        rows that some writers keep in position deletes

Bounds are no reason to refuse a table, because the new snapshot leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table.snapshots import Snapshot

from secure_bloom.errors import (
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.lakes.iceberg.commit import commit
from secure_bloom.lakes.iceberg.commit_table import CommitTable
from secure_bloom.lakes.iceberg.kept_entries import KeptEntry
from secure_bloom.lakes.iceberg.live_files import (
    Chosen,
    IcebergSelection,
    Manifests,
    unmatched_notes,
)
from secure_bloom.lakes.iceberg.locations import opened_location
from secure_bloom.lakes.iceberg.position_deletes import DeleteCarrier
from secure_bloom.lakes.iceberg.replacing_snapshot import (
    Changes,
    NewDataFile,
    Rewrite,
    SnapshotWriter,
    metrics,
    schema_of,
    spec_of,
)
from secure_bloom.lakes.iceberg.schema_fields import TableColumns
from secure_bloom.lakes.new_files import marked_name, new_paths, new_run, remove_new_file
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import read_unverified
from secure_bloom.runs.target import (
    SNAPSHOT,
    Publication,
    ReplacedFile,
    TableCommit,
    check_commit_every,
    given_up_on_error,
)
from secure_bloom.runs.work import FileReport, FileTask, new_sizes
from secure_bloom.storage import name_of, open_input
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.store_grants import StoreGrant

#: The name of each commit in a report.
OPERATION: Final = SNAPSHOT
_OLD_FILES: Final = (
    "the old files, `path` in the report, stay for time travel, in clear or under their old keys, "
    "until the table's maintenance expires their snapshots: a key that is destroyed earlier takes "
    "these snapshots with it, and a key that has leaked opens them until then"
)
_LOCKED_OUT: Final = "pyiceberg, Iceberg's Java library (Spark) and DuckDB"
_OLD_BOUNDS: Final = (
    "bounds of encrypted columns are out of the manifests of the new snapshot; those of older "
    "snapshots show them until they expire, and new writes do again unless the table's properties "
    "write.metadata.metrics.column.NAME are none or counts"
)
_STATISTICS: Final = (
    "statistics files (Puffin) of older snapshots have sketches of encrypted columns, until these "
    "snapshots expire"
)


@dataclass(slots=True, kw_only=True)
class IcebergRun:
    """The table, its selected data files, and what the snapshots do to them.

    ``base`` is the snapshot in which the files were chosen.
    """

    table: CommitTable
    chosen: Chosen
    rewrite: Rewrite
    commit_every: int | None
    manifests: Manifests
    base: Snapshot | None
    #: Notes on the choice of the files.
    notes: Sequence[str] = ()
    #: The entries of the data files, by the paths that open these.
    entries: Mapping[str, KeptEntry] = field(init=False)

    def __post_init__(self) -> None:
        self.entries = {self.table.location(path): it for path, it in self.chosen.wanted.items()}

    @property
    def paths(self) -> list[str]:
        """The data files, as paths that can be opened."""
        return list(self.entries)

    @property
    def root(self) -> str:
        """The table's folder."""
        return opened_location(self.table.metadata.location)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files, by their paths."""
        return {path: it.data_file.file_size_in_bytes for path, it in self.entries.items()}

    def listed(self) -> Sequence[str]:
        """Return the data files, as paths that can be opened."""
        return self.paths

    def skipped(self) -> Iterator[tuple[str, str]]:
        """Yield each data file that gets no filter, with the reason."""
        for path, reason in self.chosen.skipped.items():
            yield opened_location(path), reason

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[IcebergPublication]:
        """Return the publication that commits new files. An exception removes uncommitted ones."""
        publication = IcebergPublication(run=self, is_dry=dry_run, notes=list(self.notes))
        return given_up_on_error(publication, publication.give_up)

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return the files that other writers removed from the table, even if they failed here."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            self.table.refresh()
            live = self.manifests.live_paths(self.table.head)
            # A file that fails and is still live has failed by itself.
            lost -= {opened_location(path) for path in live}
        return frozenset(lost.union(publication.gone))

    @property
    def opened_names(self) -> ColumnMapping:
        """The names with which files are opened."""
        names: ColumnMapping = self.table.names
        return names

    @property
    def grant(self) -> StoreGrant | None:
        """The right to open the files in a store."""
        return self.table.grant

    @property
    def old_files(self) -> str:
        """The note on the files that the run has replaced."""
        return _OLD_FILES

    @property
    def locked_out(self) -> str:
        """Engines that cannot read the new files, if the run encrypts them."""
        return "" if self.rewrite.known is None else _LOCKED_OUT

    @property
    def shown(self) -> Sequence[str]:
        """Notes on what else shows values of secret columns."""
        notes = []
        if any(self.rewrite.shows(entry.data_file) for entry in self.entries.values()):
            notes.append(_OLD_BOUNDS)
        columns = {
            number
            for statistics in self.table.metadata.statistics
            for blob in statistics.blob_metadata
            for number in blob.fields
        }
        if any(map(self.rewrite.is_secret, columns)):
            notes.append(_STATISTICS)
        return notes


@dataclass(slots=True, kw_only=True)
class IcebergPublication:
    """The snapshots of one run, one after the other."""

    run: IcebergRun
    is_dry: bool
    name: str = field(default_factory=new_run)
    commits: list[TableCommit] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: The locations of the new files, by the paths of the old ones.
    _new: Mapping[str, str] = field(init=False)
    #: The files of the batch that is being processed.
    _batch: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._new = new_paths(self.run.entries, self._new_location)

    def batches(self) -> Iterator[Sequence[FileTask]]:
        """Yield the tasks of each snapshot."""
        paths = self.run.paths
        step = self.run.commit_every or max(1, len(paths))
        for start in range(0, len(paths), step):
            if self.commits and not self.is_dry:
                # The run's own commit has moved the branch.
                self.run.table.refresh()
            self._batch = paths[start : start + step]
            yield [FileTask(path=path, target=self._target(path)) for path in self._batch]

    def give_up(self) -> None:
        """Remove new files of a batch that was not published."""
        _remove(map(self._target, self._batch))

    def publish(self, reports: Sequence[FileReport]) -> None:
        """Commit the new files of a batch, and remove the new files of failed tasks."""
        sizes = new_sizes(reports)
        batch, self._batch = self._batch, ()
        # Key material is written before the data, so it may be there without the data.
        _remove(self._target(path) for path, size in sizes.items() if size is None)
        new = {path: size for path, size in sizes.items() if size is not None}
        changes = Changes(
            rewrite=self.run.rewrite,
            replacements=tuple(self._replacements(new)),
            # A file that failed stays as it is, and so does its entry.
            restated=frozenset(
                entry.data_file.file_path
                for path in batch
                if path not in sizes
                and self.run.rewrite.shows((entry := self.run.entries[path]).data_file)
            ),
        )
        if not self.is_dry:
            self._commit(changes)
        elif SnapshotWriter(self.run.table, self.run.manifests, 0, changes).changes_anything():
            self._report(None, changes)

    def _replacements(self, sizes: Mapping[str, int]) -> Iterator[NewDataFile]:
        """Write the position deletes of each new file, and yield its replacement."""
        carrier = DeleteCarrier(self.run.table, self.run.chosen.deletes)
        written: list[str] = []
        try:
            for path, size in sizes.items():
                old, new = self.run.entries[path], self._new[path]
                deletes = None if self.is_dry else carrier.write(old, new)
                written += [] if deletes is None else [deletes.opened]
                yield NewDataFile(
                    old=old, new=new, opened=self._target(path), size=size, deletes=deletes
                )
        except BaseException:
            _remove([*written, *map(self._target, sizes)])
            raise

    def _target(self, path: str) -> str:
        return self.run.table.new_path(self._new[path])

    def _new_location(self, path: str, hashed: bool) -> str:
        """Return the location for the new file: beside other files of its partition.

        Without partitions, all files are in one folder. ``hashed`` has the same meaning as in
        :func:`.new_files.new_paths`.
        """
        old = self.run.entries[path].data_file
        spec = spec_of(old.spec_id, self.run.table)
        name = marked_name(name_of(path), self.name, unique=old.file_path, hashed=hashed)
        provider = self.run.table.table.location_provider()
        if spec.is_unpartitioned():
            return str(provider.new_data_location(name))
        path = spec.partition_to_path(old.partition, schema_of(spec, self.run.table))
        return str(provider.new_data_location(name, _PartitionPath(path)))

    def _commit(self, changes: Changes) -> None:
        try:
            done = commit(self.run.table, self.run.manifests, self.run.base, changes)
        except UnfinishedWriteError:
            raise  # the snapshot may be there, so what it names must stay
        except SecureBloomError:
            _remove_new(changes.replacements)
            raise
        late = [it for it in changes.replacements if it.path not in done.changes.by_path]
        _remove_new(late)
        self.gone += (opened_location(it.path) for it in late)
        if done.snapshot_id is not None:
            self._report(done.snapshot_id, done.changes)

    def _report(self, snapshot_id: int | None, changes: Changes) -> None:
        self.commits.append(
            TableCommit(
                version=snapshot_id,
                operation=OPERATION,
                metrics=metrics(changes),
                files=tuple(
                    ReplacedFile(removed=it.path, added=it.new) for it in changes.replacements
                ),
            )
        )


@dataclass(frozen=True, slots=True)
class _PartitionPath:
    """The folder of a partition, in the form that location providers take."""

    path: str

    def to_path(self) -> str:
        return self.path


def open_run(
    table: CommitTable,
    rewrite: Rewrite,
    chosen: IcebergSelection,
    *,
    commit_every: int | None = None,
    needs_all: bool = False,
    sensitive: frozenset[int] = frozenset(),
    hidden: frozenset[int] = frozenset(),
) -> IcebergRun:
    """Return the run on a table of a catalog. Its errors come before anything is written.

    Raises UnsupportedFeatureError for metadata that must show values of ``sensitive`` columns, and
    with ``needs_all`` for a data file that cannot get a new file.  No note has values of ``hidden``
    columns.
    """
    check_commit_every(commit_every)
    manifests = Manifests(table.io)
    found = chosen.files(table, manifests)
    if needs_all:
        for path, reason in found.skipped.items():
            raise UnsupportedFeatureError(
                f"the data file cannot be written again: {reason}",
                hint="the table's own engine can rewrite it; then run again",
                path=path,
            )
    refuse_shown_values(table, manifests, sensitive)
    where = None if found.wanted or found.skipped else chosen.where
    return IcebergRun(
        table=table,
        chosen=found,
        rewrite=rewrite,
        commit_every=commit_every,
        manifests=manifests,
        base=table.head,
        notes=() if where is None else tuple(unmatched_notes(table, manifests, where, hidden)),
    )


def _remove(paths: Iterable[str]) -> None:
    """Remove new files that no snapshot names."""
    for path in paths:
        # One that stays is an orphan file, which the table's own maintenance removes.
        with suppress(SecureBloomError):
            remove_new_file(path)


def _remove_new(replacements: Iterable[NewDataFile]) -> None:
    for it in replacements:
        _remove([it.opened, *([it.deletes.opened] if it.deletes else [])])


#: The transform of a partition field that was removed.
_VOID: Final = "void"


def refuse_shown_values(table: CommitTable, manifests: Manifests, secret: frozenset[int]) -> None:
    """Raise UnsupportedFeatureError for a partition or a delete file with values of ``secret``."""
    if not secret:
        return
    columns = TableColumns.of(table.metadata)
    for number in _partition_sources(table, manifests):
        if number in secret:
            raise UnsupportedFeatureError(
                f"the table is partitioned by {columns.name(number)}, so its manifests and paths "
                "show what the column holds",
                hint="partition the table by columns without a key (ALTER TABLE ... DROP PARTITION "
                "FIELD), and let its engine rewrite the data files",
                path=table.path,
            )
    for entry in manifests.deletes(table.head):
        file = entry.data_file
        shown = secret & _columns_of(table, file)
        if shown:
            names = ", ".join(sorted(map(columns.name, shown)))
            raise UnsupportedFeatureError(
                f"a delete file has values of {names} in clear",
                hint="let the table's engine apply its deletes (rewrite_data_files with the option "
                "delete-file-threshold), then run again",
                path=str(file.file_path),
            )


def _partition_sources(table: CommitTable, manifests: Manifests) -> Iterator[int]:
    """Yield the ids of columns that partition live files, or files that are written from now on."""
    entries = [*manifests.live(table.head).values(), *manifests.deletes(table.head)]
    used = {it.data_file.spec_id for it in entries} | {table.metadata.default_spec_id}
    for spec_id in sorted(used):
        for part in spec_of(spec_id, table).fields:
            # A hash or a part of a value shows something of it, too.
            if str(part.transform) != _VOID:
                yield part.source_id


def _columns_of(table: CommitTable, file: Any) -> set[int]:
    """Return the ids of the columns that a delete file has."""
    sizes = file.column_sizes or {}
    if file.content == DataFileContent.POSITION_DELETES and (
        # Each column of the file has a size, so the file need not be opened.
        sizes or file.file_format == FileFormat.PUFFIN
    ):
        return set(sizes)
    if file.file_format != FileFormat.PARQUET:
        raise UnsupportedFeatureError(
            f"which columns a delete file has is not known: it is {file.file_format.value}",
            path=str(file.file_path),
        )
    path = table.location(file.file_path)
    with located(path=path), open_input(path) as opened:
        leaves = read_unverified(read_tail(opened)).leaves
    found = {leaf.element.field_id for leaf in leaves if leaf.element.field_id is not None}
    return found | {*(file.equality_ids or ())}
