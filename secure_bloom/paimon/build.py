"""Build indexes: of data files, beside them; of a table, by a commit of its snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from secure_bloom.calling.arguments import check_fields, takes
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import PAIMON
from secure_bloom.lakes.managed_tables import find_unmanaged
from secure_bloom.lakes.paimon.names import is_table
from secure_bloom.lakes.plain_files import FilesTarget
from secure_bloom.paimon.column_filter import BuildReport, IndexCommit, IndexReport
from secure_bloom.paimon.index_builder import Columns, as_options
from secure_bloom.paimon.index_files import table_alone
from secure_bloom.paimon.index_work import BesideWork, beside_work
from secure_bloom.runs.loop import run
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.runs.target import GONE
from secure_bloom.runs.work import FileTask
from secure_bloom.storage.paths import Paths, as_path, as_paths
from secure_bloom.storage.storage_options import granted

if TYPE_CHECKING:
    from secure_bloom.runs.runner import Runner

_NOT_READ = "the table's option file-index.read.enabled is false: Paimon does not ask its indexes"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BuildOptions:
    """The arguments that builds of files and of tables share, as :func:`build_indexes` has them."""

    keys: GivenKeys = None
    policy: GivenPolicy = None
    allow_clear_index: bool = False
    replace_damaged: bool = False
    replace_filters: bool = False
    dry_run: bool = False
    allow_unverified: bool = False
    allow_unprotected: bool = False
    where: str | None = None
    since: int | None = None
    commit_every: int | None = None
    jobs: int | None = None
    storage_options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def access(self) -> Access:
        """Return the keys and the policy."""
        return Access.of(
            self.keys,
            self.policy,
            allow_unverified=self.allow_unverified,
            allow_unprotected=self.allow_unprotected,
        )

    def of_work(self) -> dict[str, bool]:
        """Return the options of the work other than its columns and keys."""
        names = ("allow_clear_index", "replace_damaged", "dry_run")
        return {name: getattr(self, name) for name in names}

    def refuse_options_of_tables(self) -> None:
        """Raise PolicyError for options that files without a table cannot have."""
        for name in ("where", "since", "commit_every"):
            if getattr(self, name) is not None:
                raise PolicyError(
                    f"{name} is an option of a Paimon table, which must be the only path",
                    hint="name the files or folders that are wanted instead",
                )


@dataclass(frozen=True, eq=False, repr=False)
class FileRequest(BuildOptions):
    """The arguments of :func:`build_index`."""

    data_file: str | PathLike[str]
    columns: Columns | None = None
    _: KW_ONLY


@dataclass(frozen=True, eq=False, repr=False)
class IndexRequest(BuildOptions):
    """The arguments of :func:`build_indexes`."""

    paths: Paths
    columns: Columns | None = None
    _: KW_ONLY


@takes(FileRequest)
def build_index(asked: FileRequest) -> IndexReport | BuildReport:
    """Write ``<data file>.index`` with a Bloom filter of each of ``columns``.

    Other indexes in an existing index file are kept.  The index file is written whole or not at
    all, and the data file is not changed.

    For a table, do what :func:`build_indexes` does.

    Args:
        data_file: The data file, or a Paimon table: its folder, or
            ``paimon://WAREHOUSE/DATABASE.TABLE``.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options. For a
            table, by default those of its own options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        replace_filters: Build filters that the index of a table's file has already anew, as those
            of other files are.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        where: Condition on partition columns that chooses files of a table.
        since: Number of a snapshot. Only files that a table got later are indexed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores for a table; by default all.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report of the index, or of all files of a table.

    Raises:
        PolicyError: A column is encrypted, and ``allow_clear_index`` is not given.
        FormatError: The existing index is damaged.
    """
    path = as_path(asked.data_file)
    with granted(path, asked.storage_options):
        if is_table(path):
            return build_table(path, asked.columns, asked, LocalRunner(jobs=asked.jobs))
        asked.refuse_options_of_tables()
        report = _open_work(asked.columns, asked)().build(FileTask(path)).report
    warn_unverified(() if report.verified else (report.path,))
    return report


@takes(IndexRequest)
def build_indexes(asked: IndexRequest) -> BuildReport:
    """Build the index of each data file at ``paths``, as :func:`build_index` does.

    A file that fails is reported and does not stop the others.  Many small files are shared by
    processes, and each process asks the policy's KMS itself.

    A Paimon table, given alone, gets indexes of its live data files, and a snapshot that lists
    them.  A file whose index has these filters already is left as it is.

    Args:
        paths: Data files, folders or globs; or one Paimon table: its folder, or
            ``paimon://WAREHOUSE/DATABASE.TABLE``.
        columns: Top-level columns, or keys of maps, ``m[k]``; names, or a mapping to options. For a
            table, by default those of its own options.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_clear_index: Index encrypted columns too, although the index is in clear.
        replace_damaged: Write a new index in place of an unreadable one.
        replace_filters: Build filters that the index of a table's file has already anew, as those
            of other files are.
        dry_run: Write nothing, but report what a run would do.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        where: Condition on partition columns that chooses files of a table.
        since: Number of a snapshot. Only files that a table got later are indexed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        jobs: Number of cores; by default all.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each file.

    Raises:
        PolicyError: The request cannot be met.  No index was written.
        UnfinishedWriteError: It is unknown whether the snapshot of a table was created.

    Example:
        >>> sb.paimon.build_indexes("plain/", "email")
        <BuildReport: 1 file (1 built)>
    """
    given = as_paths(asked.paths)
    runner = LocalRunner(jobs=asked.jobs)
    with granted(given, asked.storage_options):
        table = table_alone(given)
        if table is not None:
            return build_table(table, asked.columns, asked, runner)
        asked.refuse_options_of_tables()
        done = run(_open_work(asked.columns, asked), _IndexedFiles(paths=given), runner)
    reports = tuple(it.report for it in done.reports)
    warn_unverified(file.path for file in reports if not file.verified)
    return BuildReport(files=reports, dry_run=asked.dry_run, seconds=done.seconds)


def build_table(
    path: str, columns: Columns | None, asked: BuildOptions, runner: Runner
) -> BuildReport:
    """Build the indexes of the table at ``path``, and commit them. Return the report of all files.

    Errors of the request come before anything is written.
    """
    # Imported for tables alone: most runs are over files.
    from secure_bloom.lakes.paimon.names import table_folder
    from secure_bloom.lakes.paimon.table import paimon_table
    from secure_bloom.paimon.index_work import table_work
    from secure_bloom.paimon.table_files import (
        IndexSelection,
        options_of_table,
        refuse_partitions,
        threshold_of,
        unmatched_notes,
    )
    from secure_bloom.paimon.table_run import open_run

    table = paimon_table(table_folder(path))
    wanted = options_of_table(table) if columns is None else as_options(columns)
    if columns is not None:
        refuse_partitions(table, wanted)
    selection = IndexSelection(where=asked.where, since=asked.since)
    target = open_run(table, wanted, selection, commit_every=asked.commit_every)
    open_work = partial(
        table_work,
        threshold_of(table),
        asked.access(),
        **asked.of_work(),
        replace_filters=asked.replace_filters,
        # One sync of a folder is enough for the processes of this machine.
        syncs_folders=not isinstance(runner, LocalRunner),
    )
    done = run(open_work, target, runner)
    # A file that was done again has two reports, and the later one counts.
    reports = {it.path: it.report for it in done.reports} | {
        path: IndexReport(path=path, status="unchanged", note=f"skipped: {reason}")
        for path, reason in target.chosen.skipped.items()
    }
    for path in done.gone:
        reports[path] = IndexReport(path=path, status="unchanged", note=GONE)
    warn_unverified(path for path, it in reports.items() if not it.verified)
    is_read = table.schema.options.get("file-index.read.enabled", "true")
    return BuildReport(
        files=tuple(reports[path] for path in sorted(reports)),
        dry_run=asked.dry_run,
        seconds=done.seconds,
        commits=tuple(
            IndexCommit(
                snapshot=it.version,
                operation=it.operation,
                files=tuple(file.added for file in it.files),
            )
            for it in done.commits
        ),
        table_notes=(
            *(() if is_read.strip().lower() == "true" else (_NOT_READ,)),
            # A policy may give a partition column a key.
            *(
                unmatched_notes(table, asked.where, shows_values=asked.policy is None)
                if asked.where is not None and not reports
                else ()
            ),
        ),
    )


class _IndexedFiles(FilesTarget):
    """Data files that get an index beside them, also those in the folder of a Paimon table."""

    def listed(self) -> Sequence[str]:
        """Return the data files."""
        files = find_unmanaged(self.paths, honoured=[PAIMON])
        self.tasks = [FileTask(path) for path in files]
        return files


def _open_work(columns: Columns | None, asked: BuildOptions) -> partial[BesideWork]:
    """Return the function that makes the work on files, in this process or another."""
    if columns is None:
        raise PolicyError("no column is named for an index", hint="name columns: --column id")
    return partial(beside_work, as_options(columns), asked.access(), **asked.of_work())
