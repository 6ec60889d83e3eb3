"""Add Bloom filters: to files, or to the live files of a Delta table by a commit of its log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from secure_bloom.adding.add import add_bloom_filters as add_to_files
from secure_bloom.adding.add import request_rewriter
from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import AddReport, FileAddReport, file_notes
from secure_bloom.adding.request import (
    Columns,
    Keys,
    filter_request,
)
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.adding.run import FileTask, Progress, rewrite_files
from secure_bloom.arguments import checked_arguments
from secure_bloom.delta.recognition import delta_table, refuse_options_of_tables
from secure_bloom.storage.paths import Paths, as_paths

# What tables need is loaded for tables: most runs are over files, and many are short.
if TYPE_CHECKING:
    from secure_bloom.delta.add_run import AddRun
    from secure_bloom.encryption.policy import KeyPolicy


@checked_arguments
def add_bloom_filters(
    paths: Paths,
    *,
    columns: Columns | None = None,
    policy: KeyPolicy | str | PathLike[str] | None = None,
    keys: Keys | None = None,
    in_place: bool = False,
    output: str | PathLike[str] | None = None,
    replace_filters: bool = False,
    dry_run: bool = False,
    allow_unprotected: bool = False,
    where: str | None = None,
    since: int | None = None,
    commit_every: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without touching a data page.

    ``paths`` are files, folders or globs.  ``columns`` maps column names to their options, or
    lists names; without it the policy's columns are taken.  ``keys`` defaults to the policy's
    KMS; a client of your own may be called from several threads.  Files are replaced atomically,
    or with ``in_place`` appended to, or with ``output`` written below another folder; several at
    a time, on at most ``jobs`` cores, by default all.  Many small files are shared by processes:
    each asks the policy's KMS itself, or gets ``keys`` over a pipe if they can be pickled.  A file
    that fails is reported and does not stop the others: so is one that is protected less than the
    policy says, with a weaker algorithm, shorter keys or a footer in clear, unless
    ``allow_unprotected`` is given.

    The folder of a Delta table, given alone, is changed by a commit of its log, or by one after
    every ``commit_every`` files: new files beside the old ones take the place of live files without
    the wanted filters.  ``where`` chooses files by partition columns (``"day = '2026-11-20'"``),
    ``since`` those that came after a version.  Columns go by their logical names.

    Raises PolicyError or UnsupportedFeatureError before any file is written where the request
    itself cannot be: a column that no file has, an unknown master key, a table whose log cannot be
    honoured, and what a few of the files show, such as a BOOLEAN column.  What only another file
    shows fails that file.

    >>> sb.add_bloom_filters("new/", policy="keys/policy.toml")
    <AddReport: 1 file (1 added)>
    >>> sb.add_bloom_filters("plain/", columns={"email": 0.001})
    <AddReport: 1 file (1 added)>
    """
    every = as_paths(paths)
    folder = delta_table(every)
    if folder is None:
        refuse_options_of_tables(where=where, since=since, commit_every=commit_every)
        return add_to_files(
            every,
            columns=columns,
            policy=policy,
            keys=keys,
            in_place=in_place,
            output=output,
            replace_filters=replace_filters,
            dry_run=dry_run,
            allow_unprotected=allow_unprotected,
            jobs=jobs,
            progress=progress,
        )
    from secure_bloom.delta.add_run import open_run
    from secure_bloom.delta.table_run import refuse_options_of_files

    refuse_options_of_files(folder, in_place=in_place, output=output is not None)
    request = filter_request(columns, policy, replace_filters=replace_filters)
    run = open_run(folder, request, where=where, since=since, commit_every=commit_every)
    mode = WriteMode(dry_run=dry_run, only_changes=True)
    open_rewriter = partial(
        request_rewriter, run.request, keys, mode, allow_unprotected=allow_unprotected
    )
    return _add_to_table(run, open_rewriter, dry_run=dry_run, jobs=jobs, progress=progress)


def _add_to_table(
    run: AddRun,
    open_rewriter: Callable[[], Rewriter],
    *,
    dry_run: bool,
    jobs: int | None,
    progress: Progress | None,
) -> AddReport:
    """Write new files beside the live ones, and commit them in their places."""
    from secure_bloom.delta.table_run import new_sizes

    rewriter = open_rewriter()
    chunks = check_few(run.paths, run.request, rewriter.resolver)
    reports: list[FileAddReport] = []

    def work(tasks: Sequence[FileTask]) -> Mapping[str, int | None]:
        done = rewrite_files(
            rewriter,
            open_rewriter,
            tasks,
            chunks_a_file=chunks,
            jobs=jobs,
            progress=progress,
        )
        reports.extend(map(run.names.in_report, done))
        return new_sizes(done)

    change = run.rewrite(work, dry_run=dry_run)
    told = tuple(_told_of_gone(reports, run.gone(change, reports)))
    notes = (*file_notes(told), *change.notes)
    return AddReport(files=told, notes=notes, dry_run=dry_run, commits=change.commits)


def _told_of_gone(
    reports: Sequence[FileAddReport], gone: Collection[str]
) -> Iterable[FileAddReport]:
    """The reports, and what became of files that other writers removed while this run worked."""
    from secure_bloom.delta.table_run import GONE

    for report in reports:
        if report.path not in gone:
            yield report
            continue
        yield replace(
            report,
            status="unchanged",
            bytes_after=report.bytes_before,
            filters=(),
            error=None,
            hint=None,
            causes=(),
            notes=(*report.notes, GONE),
        )
