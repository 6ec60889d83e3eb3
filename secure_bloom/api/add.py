"""Add Bloom filters to files, or to the live files of a table by a commit of its log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import AddReport, FileAddReport, file_notes
from secure_bloom.adding.request import FilterRequest
from secure_bloom.adding.rewrite import WriteMode
from secure_bloom.adding.run import AddRequest, FileTask, add_to_files, rewrite_files
from secure_bloom.adding.table_change import AnyTableRun, new_sizes, with_gone_files
from secure_bloom.calling.arguments import takes
from secure_bloom.errors import PolicyError
from secure_bloom.storage import TableLog
from secure_bloom.storage.paths import as_paths
from secure_bloom.tables.formats import refuse_options_of_tables, table_to_write
from secure_bloom.tables.iceberg_catalog import require_pyiceberg

if TYPE_CHECKING:
    from secure_bloom.delta.selection import TableSelection
    from secure_bloom.delta.table_run import TableRun
    from secure_bloom.iceberg.add_run import IcebergRun

#: The name of a commit of filters in the history of a Delta table.
DELTA_OPERATION: Final = "ADD BLOOM FILTERS"


@takes(AddRequest)
def add_bloom_filters(asked: AddRequest) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without changing a data page.

    Each file is replaced atomically.  A file that fails is reported and does not stop the others.
    Many small files are shared among processes, and each process asks the policy's KMS itself.

    The folder of a Delta table, given alone, gets new files beside the old ones and a commit.  A
    table of an Iceberg catalog (``iceberg://CATALOG/NAMESPACE.TABLE``), given alone, gets new data
    files and a snapshot ``replace``.  Columns have the names of the table.

    Args:
        paths: Files, folders, globs or URIs, or one Delta or Iceberg table.
        columns: Names of columns, or a mapping from names to options or to an fpp; by default the
            columns of the policy.
        policy: A KeyPolicy, or the path of one.
        keys: A keyring or KMS client, which serves several threads; by default the policy's KMS.
        in_place: Append to each file instead of replacing it.
        output: Folder for the new files. The old files stay.
        replace_filters: Build existing filters again.
        dry_run: Write nothing, but report what a run would do.
        allow_unprotected: Accept files that are protected less than the policy says (a weaker
            algorithm, shorter keys, a footer in clear).
        where: Condition that chooses files of a table: on partition columns of a Delta table, on
            any columns of an Iceberg table, as far as partitions and bounds decide.
        since: Version of a Delta table or snapshot id of an Iceberg table. Only files added later
            are changed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        branch: Branch of an Iceberg table to write to. By default main.
        jobs: Number of cores; by default all.
        progress: Called with the number of column chunks done and the number of all chunks.

    Returns:
        A report with a record for each file and each filter.

    Raises:
        PolicyError: The request cannot be met, for example no file has a column or the KMS lacks a
            key.  No file was written.
        UnsupportedFeatureError: The log of a table cannot be honoured.  No file was written.

    Example:
        >>> sb.add_bloom_filters("new/", policy="keys/policy.toml")
        <AddReport: 1 file (1 added)>
        >>> sb.add_bloom_filters("plain/", columns={"email": 0.001})
        <AddReport: 1 file (1 added)>
    """
    # Listed once: the paths may come from a generator.
    paths = as_paths(asked.paths)
    asked = replace(asked, paths=paths)
    table = table_to_write(paths)
    if table is not None:
        log, place = table
        return _add_to_table(*_OPENED[log](place, asked), asked)
    refuse_options_of_tables(
        where=asked.where, since=asked.since, commit_every=asked.commit_every, branch=asked.branch
    )
    return add_to_files(asked)


# Imported inside the functions, for tables alone: most runs are over files, and many are short.
def _delta_run(folder: str, asked: AddRequest) -> tuple[AnyTableRun, FilterRequest]:
    from secure_bloom.delta.selection import TableSelection
    from secure_bloom.delta.table_run import refuse_options_of_files

    refuse_options_of_files(folder, in_place=asked.in_place, output=asked.output is not None)
    if asked.branch is not None:
        raise PolicyError("branch is for Iceberg tables: a Delta table has none", path=folder)
    chosen = TableSelection(where=asked.where, since=asked.since)
    return open_delta_run(folder, asked.filters(), chosen, commit_every=asked.commit_every)


def open_delta_run(
    folder: str,
    request: FilterRequest,
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> tuple[TableRun, FilterRequest]:
    """Return the run on the Delta table in a folder, and the request for its files.

    Its errors come before anything is written.
    """
    from secure_bloom.delta.actions import Operation
    from secure_bloom.delta.table_run import open_run

    wanted = request.wanted
    fpps = {name: options.fpp for name, options in wanted.columns.items()}
    parameters = {
        "columns": json.dumps(fpps, ensure_ascii=False),
        "replaceFilters": json.dumps(wanted.replace_filters),
    }
    operation = Operation(name=DELTA_OPERATION, parameters=parameters)
    run = open_run(folder, operation, chosen, columns=wanted.columns, commit_every=commit_every)
    if request.guard.policy is not None:
        run.require(request.guard.policy.columns)
    known = filter(run.names.has_field, wanted.columns)
    return run, request.on_table(run.opened_names, known)


def open_iceberg_run(
    path: str,
    request: FilterRequest,
    *,
    where: str | None = None,
    since: int | None = None,
    branch: str | None = None,
    commit_every: int | None = None,
    in_place: bool = False,
    output: bool = False,
) -> IcebergRun:
    """Return the run on a table of an Iceberg catalog.

    Its errors come before anything is written. One is for each of ``in_place`` and ``output``.
    """
    require_pyiceberg(path)
    from secure_bloom.iceberg.add_run import open_run, refuse_options_of_files
    from secure_bloom.iceberg.live_files import IcebergSelection

    refuse_options_of_files(path, in_place=in_place, output=output)
    chosen = IcebergSelection(where=where, since=since)
    return open_run(path, request, chosen, branch=branch, commit_every=commit_every)


def _iceberg_run(path: str, asked: AddRequest) -> tuple[AnyTableRun, FilterRequest]:
    run = open_iceberg_run(
        path,
        asked.filters(),
        where=asked.where,
        since=asked.since,
        branch=asked.branch,
        commit_every=asked.commit_every,
        in_place=asked.in_place,
        output=asked.output is not None,
    )
    return run, run.request


#: The log of a table that may be written -> the run on it, and the request for its files.
_OPENED: Final = {TableLog.DELTA: _delta_run, TableLog.ICEBERG: _iceberg_run}


def _add_to_table(run: AnyTableRun, request: FilterRequest, asked: AddRequest) -> AddReport:
    """Write new files for the live ones, and commit them in place of the old ones."""
    # Only changes: a file that has the wanted filters stays in the log as it is.
    mode = WriteMode(dry_run=asked.dry_run, only_changes=True)
    open_rewriter = asked.rewriter(request, mode)
    rewriter = open_rewriter()
    chunks = check_few(run.paths, request, rewriter.resolver)
    reports: list[FileAddReport] = []

    def work(tasks: Sequence[FileTask]) -> Mapping[str, int | None]:
        done = rewrite_files(
            rewriter,
            open_rewriter,
            tasks,
            chunks_a_file=chunks,
            jobs=asked.jobs,
            progress=asked.progress,
        )
        reports.extend(done)
        return new_sizes(done)

    change = run.rewrite(work, dry_run=asked.dry_run)
    gone = run.gone(change, reports)
    shown = (*with_gone_files(reports, gone), *run.skipped())
    notes = (*file_notes(shown), *change.notes)
    return AddReport(files=shown, notes=notes, dry_run=asked.dry_run, commits=change.commits)
