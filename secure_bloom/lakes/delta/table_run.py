"""The target of a run over files of a Delta table: new files beside the old ones, and commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace

from secure_bloom.errors import (
    FormatError,
    SecureBloomError,
    UnfinishedWriteError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.lakes import LiveFile, Snapshot
from secure_bloom.lakes.delta.actions import all_columns, column_names
from secure_bloom.lakes.delta.log_bounds import IsSecret, bounded_columns
from secure_bloom.lakes.delta.log_commit import commit, open_table
from secure_bloom.lakes.delta.log_files import resolve
from secure_bloom.lakes.delta.replacements import (
    Operation,
    Replacement,
    metrics,
    without_secret_bounds,
)
from secure_bloom.lakes.delta.run_record import (
    clean_up,
    is_of_run,
    new_file,
    new_path,
    recorded,
    remove_files,
)
from secure_bloom.lakes.delta.selection import TableSelection
from secure_bloom.lakes.new_files import new_paths, new_run
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.runs.target import Publication, ReplacedFile, TableCommit, check_commit_every
from secure_bloom.runs.work import FileReport, FileTask, new_sizes
from secure_bloom.storage.column_mapping import ColumnMapping

_CLUSTERING = "delta.clustering"
_OLD_FILES = (
    "the old files, `path` in the report, stay for time travel, in clear or under their old keys, "
    "until the table's VACUUM removes them: a key that is destroyed earlier takes the older "
    "versions with it, and a key that has leaked opens them until then"
)
_LOCKED_OUT = "deltalake, Polars, DataFusion and DuckDB"
_OLD_LOG = (
    "bounds of encrypted columns are out of the table's latest version; older commits and "
    "checkpoints of the log show them until they are cleaned up, and new writes do again unless "
    "delta.dataSkippingStatsColumns leaves these columns out"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """The table, its selected files, and the description of the run for the log."""

    table: Snapshot
    files: tuple[LiveFile, ...]
    names: ColumnMapping
    operation: Operation
    commit_every: int | None
    #: Notes on what else shows values of secret columns.
    shown: Sequence[str] = ()
    #: Notes on the choice of the files.
    notes: Sequence[str] = ()

    @property
    def paths(self) -> list[str]:
        """The files, as paths that can be opened."""
        return [file.path for file in self.files]

    @property
    def root(self) -> str:
        """The table's folder."""
        return self.table.folder

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files, by their paths."""
        return {file.path: file.size for file in self.files}

    @property
    def opened_names(self) -> ColumnMapping | None:
        """The names with which files are opened, or None if files have the table's names."""
        return column_names(self.table.metadata)

    @property
    def grant(self) -> None:
        """Return None: files are opened with the credentials of the environment."""
        return

    @property
    def old_files(self) -> str:
        """The note on the files that the run has replaced."""
        return _OLD_FILES

    @property
    def locked_out(self) -> str:
        """Engines that cannot read the new files, if the run encrypts them."""
        return "" if self.operation.is_secret is None else _LOCKED_OUT

    def listed(self) -> Sequence[str]:
        """Return the files, as paths that can be opened."""
        return self.paths

    def skipped(self) -> Iterable[tuple[str, str]]:
        """Return live files that a run leaves out. A Delta table has none."""
        return ()

    @contextmanager
    def publishing(self, *, dry_run: bool) -> Iterator[DeltaPublication]:
        """Yield the publication that commits new files. An exception removes uncommitted ones."""
        publication = DeltaPublication(
            self.table,
            self.files,
            self.operation,
            commit_every=self.commit_every,
            is_dry=dry_run,
        )
        publication.notes += self.notes
        # Every run cleans up: files of a dead run do not wait for another run of its kind.
        if not dry_run:
            clean_up(self.root)
        record = (
            nullcontext(list[str]())
            if dry_run
            else recorded(self.root, publication.name, self.table.version, publication.paths)
        )
        with record as notes:
            try:
                yield publication
            except BaseException:
                publication.give_up()
                raise
        # The record has notes of its own when it ends.
        publication.notes += notes

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return the files that other writers removed during this run, even if they failed here."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            # A file that fails and is still live has failed by itself.
            lost -= {file.path for file in open_table(self.table.folder).files}
        return frozenset(lost.union(publication.gone))


def open_run(
    table: Snapshot,
    operation: Operation,
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
    is_hidden: IsSecret | None = None,
) -> TableRun:
    """Return the run on a table of ``log_commit.open_table``.

    Its errors come before anything is written.  Raises UnsupportedFeatureError if the table is
    clustered by a column that is to be secret, because the column's bounds would have to stay in
    the log.  No note has values of partition columns for which ``is_hidden`` is true.
    """
    check_commit_every(commit_every)
    names = all_columns(table.metadata)
    files, is_secret = tuple(chosen.files(table)), operation.is_secret
    if is_secret is not None:
        _refuse_secret_clusters(table, names, is_secret)
    return TableRun(
        table=table,
        files=files,
        names=names,
        operation=replace(operation, parameters={**operation.parameters, **chosen.parameters()}),
        commit_every=commit_every,
        notes=() if files else tuple(chosen.unmatched(table, is_hidden)),
        shown=(_OLD_LOG,) if is_secret is not None and _shows(table, files, is_secret) else (),
    )


def _refuse_secret_clusters(table: Snapshot, names: ColumnMapping, is_secret: IsSecret) -> None:
    text = table.domains.get(_CLUSTERING)
    if text is None:
        return
    try:
        columns = [
            [str(it) for it in path]
            for path in parsed_json(text, f"the domain {_CLUSTERING}")["clusteringColumns"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FormatError(f"the domain {_CLUSTERING} is malformed", path=table.folder) from None
    for path in columns:
        # The domain has the physical names (PROTOCOL.md, "Clustered Table").
        name = names.logical(".".join(path))
        if is_secret(tuple(name.split("."))):
            raise UnsupportedFeatureError(
                f"the table is clustered by {name}, whose bounds its log must have in clear",
                hint="cluster the table by columns without a key (ALTER TABLE ... CLUSTER BY)",
                path=table.folder,
            )


def _shows(table: Snapshot, files: Iterable[LiveFile], is_secret: IsSecret) -> bool:
    """Return whether the log has bounds of secret columns.

    Raises FormatError if this is unknown.
    """
    shown = False
    for file in files:
        # All of them: a run that met one later would have done its work for nothing.
        with located(path=file.path):
            columns = bounded_columns(file.add, table.metadata.schema)
        shown = shown or any(map(is_secret, columns))
    return shown


class DeltaPublication:
    """The commits of one run, one after the other."""

    def __init__(
        self,
        table: Snapshot,
        files: Sequence[LiveFile],
        operation: Operation,
        *,
        commit_every: int | None = None,
        is_dry: bool = False,
    ) -> None:
        self.name = new_run()
        self.commits: list[TableCommit] = []
        self.gone: list[str] = []
        self.notes: list[str] = []
        self._table = table
        self._files = files
        self._operation = operation
        self._step = commit_every or max(1, len(files))
        self._is_dry = is_dry
        #: The files of the batch that is being processed.
        self._batch: Sequence[LiveFile] = ()
        new = new_paths(
            (file.add["path"] for file in files),
            lambda path, hashed: new_path(path, self.name, hashed=hashed),
        )
        self._new = {file.path: new[file.add["path"]] for file in files}

    @property
    def paths(self) -> list[str]:
        """All new files that may be written, by their paths in the log."""
        return list(self._new.values())

    def batches(self) -> Iterator[Sequence[FileTask]]:
        """Yield the tasks of each commit."""
        for start in range(0, len(self._files), self._step):
            self._batch = self._files[start : start + self._step]
            yield [
                FileTask(path=file.path, target=new_file(self._table.folder, self._new[file.path]))
                for file in self._batch
            ]

    def give_up(self) -> None:
        """Remove new files of a batch that was not published."""
        self._remove(self._new[file.path] for file in self._batch)

    def publish(self, reports: Sequence[FileReport]) -> None:
        """Commit the new files of a batch, and remove the new files of failed tasks."""
        sizes = new_sizes(reports)
        batch, self._batch = self._batch, ()
        # Key material is written before the data, so it may be there without it.
        self._remove(self._new[path] for path, size in sizes.items() if size is None)
        # A file that failed has None there, and stays as it is, in the log too.  A file that is not
        # there needed no new one, but its bounds may have to leave the log.
        sound = (file for file in batch if sizes.get(file.path, 0) is not None)
        found = (self._replacement(file, sizes.get(file.path)) for file in sound)
        replacements = [it for it in found if it is not None]
        if not replacements:
            return
        if self._is_dry:
            self.commits.append(self._committed(self._table.version + 1, replacements))
        else:
            self._commit(replacements)

    def _replacement(self, file: LiveFile, size: int | None) -> Replacement | None:
        if size is not None:
            return Replacement(old=file.add, path=self._new[file.path], size=size)
        if (
            without_secret_bounds(file.add, self._table.metadata.schema, self._operation)
            == file.add
        ):
            return None
        # The file stays, and its bounds leave the log.
        return Replacement(old=file.add, path=file.add["path"], size=file.add["size"])

    def _commit(self, replacements: Sequence[Replacement]) -> None:
        folder = self._table.folder
        try:
            # A commit of this run has made another version of the table.
            table = open_table(folder) if self.commits else self._table
            done = commit(table, replacements, self._operation)
        except UnfinishedWriteError:
            raise  # the commit may be there, so what it names must stay
        except SecureBloomError:
            self._remove(it.path for it in replacements)
            raise
        kept = {it.path for it in done.replaced}
        late = [it for it in replacements if it.path not in kept]
        self._remove(it.path for it in late)
        self.gone += (resolve(folder, it.old["path"]) for it in late if it.is_new_file)
        if done.version is not None:
            self.commits.append(self._committed(done.version, done.replaced))

    def _remove(self, paths: Iterable[str]) -> None:
        # Only files of this run are removed, whatever paths the log has.
        mine = [path for path in paths if is_of_run(path, self.name)]
        # Files that cannot be removed are removed by the next run, or by the table's VACUUM.
        with suppress(SecureBloomError):
            remove_files(self._table.folder, mine)

    def _committed(self, version: int, replaced: Sequence[Replacement]) -> TableCommit:
        return TableCommit(
            version=version,
            operation=self._operation.name,
            metrics=metrics(replaced),
            files=tuple(
                ReplacedFile(removed=it.old["path"], added=it.path)
                for it in replaced
                if it.is_new_file
            ),
        )
