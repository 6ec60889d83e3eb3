"""The target of a run over files of a Paimon table: indexes, and snapshots that list them.

The files are those of the latest snapshot. If another writer deletes a file meanwhile, the file
stays deleted. If another writer gives a file a different index, the file is processed again. A
run removes only files that it wrote, and none if it is unknown whether its commit succeeded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from secure_bloom.errors import FileChangedError, UnfinishedWriteError
from secure_bloom.lakes.new_files import new_run
from secure_bloom.lakes.paimon.manifest_commit import (
    KIND,
    CommittedIndexes,
    NewIndex,
    commit,
    remove,
)
from secure_bloom.lakes.paimon.snapshot import Identity
from secure_bloom.lakes.paimon.table import (
    INDEX_SUFFIX,
    PaimonTable,
    paimon_table,
    partition_types,
)
from secure_bloom.paimon.column_filter import IndexOptions
from secure_bloom.paimon.index_work import IndexResult, TableFile
from secure_bloom.paimon.table_files import (
    IndexableFile,
    IndexableFiles,
    IndexSelection,
    choose,
    require_columns,
)
from secure_bloom.runs.target import (
    Publication,
    ReplacedFile,
    TableCommit,
    check_commit_every,
    given_up_on_error,
)
from secure_bloom.runs.work import FileReport, FileTask
from secure_bloom.storage import sibling
from secure_bloom.storage.dispatch import make_names_durable
from secure_bloom.storage.paths import without_links

#: How often a file is done again because another run gave it another index meanwhile.
_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRun:
    """The table, the columns that get filters, and the files of the run."""

    table: PaimonTable
    columns: Mapping[str, IndexOptions]
    chosen: IndexableFiles
    commit_every: int | None

    def listed(self) -> Sequence[str]:
        """Return the data files that get an index."""
        return [each.file.path for each in self.chosen.wanted]

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[IndexPublication]:
        """Return the publication that commits indexes. An exception removes uncommitted ones."""
        publication = IndexPublication(run=self, is_dry=dry_run)
        return given_up_on_error(publication, publication.give_up)

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return the files that other writers removed from the table, even if they failed here."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            # A file that fails and is still live has failed by itself.
            lost -= paimon_table(self.table.folder).files.keys()
        return frozenset(lost.union(publication.gone))


def open_run(
    table: PaimonTable,
    columns: Mapping[str, IndexOptions],
    selection: IndexSelection,
    *,
    commit_every: int | None,
) -> IndexRun:
    """Return the run on a table. Its errors come before anything is written."""
    check_commit_every(commit_every)
    require_columns(table, columns)
    return IndexRun(
        table=table,
        columns=columns,
        chosen=choose(table, selection, columns),
        commit_every=commit_every,
    )


@dataclass(slots=True, kw_only=True)
class IndexPublication:
    """The snapshots of one run, one after the other."""

    run: IndexRun
    is_dry: bool
    commits: list[TableCommit] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    notes: Sequence[str] = ()
    #: The files and the tasks of the batch that is being processed.
    _batch: Mapping[str, IndexableFile] = field(default_factory=dict)
    _tasks: Mapping[str, FileTask] = field(default_factory=dict)
    _table: PaimonTable = field(init=False)
    #: Files of the last batch whose entries had changed when they were committed.
    _late: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._table = self.run.table

    def batches(self) -> Iterator[Sequence[FileTask]]:
        """Yield the tasks of each snapshot. Repeat the tasks of files that got another index."""
        wanted = self.run.chosen.wanted
        step = self.run.commit_every or max(1, len(wanted))
        for start in range(0, len(wanted), step):
            if self.commits and not self.is_dry:
                # The run's own snapshot is the latest.
                self._table = self._as_it_is_now()
            files: Sequence[IndexableFile] = wanted[start : start + step]
            for _ in range(_ROUNDS):
                yield self._begun(files)
                if not (files := self._again()):
                    break
            else:
                raise FileChangedError(
                    f"other runs gave {files[0].file.path} another index {_ROUNDS} times",
                    hint="run again when no other run builds indexes",
                    path=self._table.folder,
                )

    def give_up(self) -> None:
        """Remove index files of a batch that was not published."""
        self._remove(self._tasks)

    def publish(self, reports: Sequence[IndexResult]) -> None:
        """Commit the indexes of a batch, and remove the indexes of failed tasks."""
        batch, self._batch = self._batch, {}
        self._remove(it.path for it in reports if it.status == "failed")
        indexes = {
            it.path: NewIndex(entry=batch[it.path].file.entry, name=it.name, embedded=it.embedded)
            for it in reports
            if it.changes
        }
        if self.is_dry:
            self._report(None, indexes)
        elif indexes:
            # A snapshot must not name files that a power cut takes away.
            make_names_durable(self._written(path for path, it in indexes.items() if it.name))
            done = self._committed(list(indexes.values()))
            listed = {id(it) for it in done.indexes}
            self._late = frozenset(path for path, it in indexes.items() if id(it) not in listed)
            self._remove(self._late)
            self._report(done.snapshot, indexes.keys() - self._late)
        self._tasks = {}

    def _committed(self, indexes: Sequence[NewIndex]) -> CommittedIndexes:
        snapshot = self._table.snapshot
        if snapshot is None:
            return CommittedIndexes(snapshot=None, indexes=())
        try:
            return commit(
                self._table.folder, snapshot, indexes, partition_types(self._table.schema)
            )
        except UnfinishedWriteError:
            # The snapshot may be there, so what it names must stay.
            self._tasks = {}
            raise

    def _report(self, snapshot: int | None, paths: Iterable[str]) -> None:
        # The entry of a file takes the place of the one that it had.
        files = tuple(ReplacedFile(removed=path, added=path) for path in sorted(paths))
        if files:
            self.commits.append(
                TableCommit(version=snapshot, operation=KIND, metrics={}, files=files)
            )

    def _begun(self, files: Sequence[IndexableFile]) -> Sequence[FileTask]:
        run = new_run()
        taken = _embedded_before(self._table)
        self._late = frozenset()
        self._batch = {each.file.path: each for each in files}
        self._tasks = {path: self._task(each, run, taken) for path, each in self._batch.items()}
        return list(self._tasks.values())

    def _task(
        self, chosen: IndexableFile, run: str, taken: Mapping[Identity, set[bytes | None]]
    ) -> FileTask:
        file = chosen.file
        target = sibling(file.path, f"{file.entry.file['_FILE_NAME']}.sb-{run}{INDEX_SUFFIX}")
        listed = TableFile(
            root=file.root,
            target=target,
            options=chosen.options,
            stored=chosen.stored,
            left_out=chosen.left_out,
            names=self._table.mapping(file),
            size=file.size,
            old_names=file.index_names,
            embedded=file.embedded_index,
            taken=frozenset(taken.get(file.entry.place, ())),
        )
        return FileTask(file.path, target, listed)

    def _again(self) -> Sequence[IndexableFile]:
        """Return the files that got another index meanwhile. The others are gone."""
        if not self._late:
            return ()
        self._table = self._as_it_is_now()
        chosen = choose(self._table, IndexSelection(), self.run.columns)
        again = [each for each in chosen.wanted if each.file.path in self._late]
        self.gone += sorted(self._late - {each.file.path for each in again})
        return again

    def _as_it_is_now(self) -> PaimonTable:
        """Return the table with its latest files, but with the schema of the run's beginning."""
        # Others may have renamed a column of the request meanwhile.
        return replace(paimon_table(self.run.table.folder), schema=self.run.table.schema)

    def _remove(self, paths: Iterable[str]) -> None:
        remove(self._written(path for path in paths if path in self._tasks))

    def _written(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the path of the index file that belongs to each data file.

        Raises an error if a folder between the table's own and the file is a symbolic link.
        """
        for path in paths:
            listed = self._tasks[path].listed
            yield without_links(listed.target, listed.root)


def _embedded_before(table: PaimonTable) -> Mapping[Identity, set[bytes | None]]:
    """Return, for each data file, the embedded indexes in entries that manifests delete."""
    found: dict[Identity, set[bytes | None]] = defaultdict(set)
    for identity in table.snapshot.taken if table.snapshot is not None else ():
        # The last two parts are the index files and the index in the manifest.
        found[identity[:-2]].add(identity[-1])
    return found
