"""Build the indexes of a Paimon table's live files, and commit them by snapshots.

    choose files -> tasks -> indexes beside the files -> a snapshot that lists them

The files are those of the latest snapshot.  A file that another writer took away meanwhile stays
away, and a file that got another index meanwhile is done again.  A run removes only files that it
wrote, and none after an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from secure_bloom.encryption.access import Access
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import UnfinishedWriteError
from secure_bloom.lakes.new_files import new_run
from secure_bloom.lakes.paimon.manifest_commit import (
    KIND,
    CommittedIndexes,
    NewIndex,
    commit,
    identity,
    remove,
)
from secure_bloom.lakes.paimon.names import table_folder
from secure_bloom.lakes.paimon.table import (
    INDEX_SUFFIX,
    PaimonFile,
    PaimonTable,
    paimon_table,
    partition_types,
)
from secure_bloom.paimon.column_filter import BuildReport, IndexCommit, IndexOptions, IndexReport
from secure_bloom.paimon.index_builder import Columns, as_options, failed_report
from secure_bloom.paimon.table_files import (
    IndexableFile,
    IndexSelection,
    choose,
    options_of_table,
    require_columns,
    threshold_of,
)
from secure_bloom.paimon.table_work import IndexResult, IndexTask, IndexWork, write_index
from secure_bloom.running.parallelism import chosen_parallelism, each_file
from secure_bloom.runs.target import GONE, check_commit_every
from secure_bloom.storage import files_at_once, open_input
from secure_bloom.storage.paths import without_links

#: How often a file is done again because another run gave it another index meanwhile.
_ROUNDS = 3
_NOT_READ: Final = (
    "the table's option file-index.read.enabled is false: Paimon does not ask its indexes"
)

#: Does the tasks, here or on other machines, and yields their results as they are done.
Runner = Callable[[IndexWork, Sequence[IndexTask]], Iterator[IndexResult]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRequest:
    """What a run builds, and how. ``columns`` are None for the table's own options."""

    columns: Columns | None
    access: Access
    selection: IndexSelection
    commit_every: int | None = None
    allow_clear_index: bool = False
    replace_damaged: bool = False
    dry_run: bool = False


def build_table(path: str, request: IndexRequest, runner: Runner) -> BuildReport:
    """Build the indexes of the table at ``path``, and commit them. Return the report of all files.

    Errors of the request come before anything is written.
    """
    check_commit_every(request.commit_every)
    table = paimon_table(table_folder(path))
    columns = options_of_table(table) if request.columns is None else as_options(request.columns)
    require_columns(table, columns)
    work = IndexWork(
        access=request.access,
        threshold=threshold_of(table),
        allow_clear_index=request.allow_clear_index,
        replace_damaged=request.replace_damaged,
        dry_run=request.dry_run,
    )
    run = _IndexRun(table=table, columns=columns, request=request, work=work, runner=runner)
    run.build()
    return run.report()


@dataclass(slots=True, kw_only=True)
class _IndexRun:
    """One run on a table: the reports so far, and the snapshots that it has committed."""

    table: PaimonTable
    columns: Mapping[str, IndexOptions]
    request: IndexRequest
    work: IndexWork
    runner: Runner
    reports: dict[str, IndexReport] = field(default_factory=dict)
    commits: list[IndexCommit] = field(default_factory=list)

    def report(self) -> BuildReport:
        """Return the report of the run."""
        files = tuple(self.reports[path] for path in sorted(self.reports))
        warn_unverified(file.path for file in files if not file.verified)
        is_read = self.table.schema.options.get("file-index.read.enabled", "true")
        return BuildReport(
            files=files,
            dry_run=self.request.dry_run,
            commits=tuple(self.commits),
            table_notes=() if is_read.strip().lower() == "true" else (_NOT_READ,),
        )

    def build(self) -> None:
        """Build and commit in steps of ``commit_every`` files."""
        chosen = choose(self.table, self.request.selection, self.columns)
        self._skip(chosen.skipped)
        step = self.request.commit_every or max(1, len(chosen.wanted))
        for start in range(0, len(chosen.wanted), step):
            files: Sequence[IndexableFile] = chosen.wanted[start : start + step]
            if self.commits and not self.request.dry_run:
                # The run's own snapshot is the latest.
                self.table = paimon_table(self.table.folder)
            for _ in range(_ROUNDS):
                files = self._again(self._step(files))
                if not files:
                    break

    def _skip(self, reasons: Mapping[str, str]) -> None:
        for path, reason in reasons.items():
            self.reports[path] = IndexReport(
                path=path, status="unchanged", note=f"skipped: {reason}"
            )

    def _step(self, files: Sequence[IndexableFile]) -> list[str]:
        """Build the indexes of some files and commit them. Return the files that came too late."""
        tasks = [_task(self.table, each, new_run()) for each in files]
        written = {task.path: without_links(task.target, task.root) for task in tasks}
        try:
            results = {it.report.path: it for it in self.runner(self.work, tasks)}
        except BaseException:
            remove(written.values())
            raise
        results |= {
            task.path: self._beside(task, results[task.path])
            for task, each in zip(tasks, files, strict=True)
            if self._was_taken(each.file, results[task.path])
        }
        self.reports |= {path: result.report for path, result in results.items()}
        indexes = {
            each.file.path: _new_index(each.file, results[each.file.path])
            for each in files
            if results[each.file.path].report.status == "built"
        }
        if self.request.dry_run or not indexes:
            if indexes:
                self._committed(None, indexes)
            return []
        done = self._publish(list(indexes.values()), written.values())
        listed = {id(it) for it in done.indexes}
        late = {path: it for path, it in indexes.items() if id(it) not in listed}
        remove(written[path] for path, it in late.items() if it.name is not None)
        if done.snapshot is not None:
            self._committed(done.snapshot, indexes.keys() - late.keys())
        return sorted(late)

    def _was_taken(self, file: PaimonFile, result: IndexResult) -> bool:
        """Return whether the manifests take away the very entry that a result would add."""
        snapshot = self.table.snapshot
        if result.embedded is None or snapshot is None:
            return False
        return identity(_new_index(file, result)) in snapshot.taken

    def _beside(self, task: IndexTask, result: IndexResult) -> IndexResult:
        """Return the result with its index in a file, whose name makes the entry a new one."""
        if not self.request.dry_run and result.embedded is not None:
            with open_input(task.path) as file:
                write_index(file, task, result.embedded)
        return IndexResult(report=replace(result.report, index=task.target), name=task.new_name)

    def _publish(self, indexes: Sequence[NewIndex], written: Iterable[str]) -> CommittedIndexes:
        snapshot = self.table.snapshot
        if snapshot is None:
            return CommittedIndexes(snapshot=None, indexes=())
        types = partition_types(self.table.schema)
        try:
            return commit(self.table.folder, snapshot, indexes, types)
        except UnfinishedWriteError:
            raise  # the snapshot may be there, so what it names must stay
        except Exception:
            # Ctrl-C may come while the snapshot is created: then the indexes stay.
            remove(written)
            raise

    def _committed(self, snapshot: int | None, paths: Iterable[str]) -> None:
        self.commits.append(
            IndexCommit(snapshot=snapshot, operation=KIND, files=tuple(sorted(paths)))
        )

    def _again(self, late: Sequence[str]) -> list[IndexableFile]:
        """Return the files that got another index meanwhile. Report the others as gone."""
        if not late:
            return []
        self.table = paimon_table(self.table.folder)
        chosen = choose(self.table, IndexSelection(), self.columns)
        again = [each for each in chosen.wanted if each.file.path in late]
        gone = set(late) - {each.file.path for each in again}
        for path in gone:
            self.reports[path] = IndexReport(path=path, status="unchanged", note=GONE)
        return again


def _task(table: PaimonTable, chosen: IndexableFile, run: str) -> IndexTask:
    file = chosen.file
    name = file.entry.file["_FILE_NAME"]
    return IndexTask(
        path=file.path,
        root=table.folder,
        size=file.size,
        options=chosen.options,
        stored=chosen.stored,
        names=table.mapping(file, only_top=True),
        new_name=f"{name}.sb-{run}{INDEX_SUFFIX}",
        old_names=file.index_names,
        embedded=file.embedded_index,
    )


def _new_index(file: PaimonFile, result: IndexResult) -> NewIndex:
    return NewIndex(entry=file.entry, name=result.name, embedded=result.embedded)


def run_here(jobs: int | None) -> Runner:
    """Return the runner that does the tasks in threads and processes of this machine."""

    def run(work: IndexWork, tasks: Sequence[IndexTask]) -> Iterator[IndexResult]:
        sizes = [task.size for task in tasks]
        parallelism = chosen_parallelism(
            len(tasks),
            jobs,
            mean_size=sum(sizes) // len(sizes) if sizes else None,
            at_once=files_at_once([task.path for task in tasks]),
        )
        done = each_file(
            work.opened(),
            work.opened,
            tasks,
            parallelism,
            lost=lambda task, error: IndexResult(report=failed_report(task.path, error)),
        )
        with closing(done):
            for _, result in done:
                yield result

    return run
