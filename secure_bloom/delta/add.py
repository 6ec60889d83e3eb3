"""Add Bloom filters: to files, or to the live files of a Delta table by a commit of its log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from secure_bloom.adding.add import AddRequest, add_to_files
from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import AddReport, FileAddReport, file_notes
from secure_bloom.adding.rewrite import WriteMode
from secure_bloom.adding.run import FileTask, rewrite_files
from secure_bloom.delta.recognition import delta_table, refuse_options_of_tables
from secure_bloom.signatures import takes
from secure_bloom.storage.paths import as_paths


@takes(AddRequest)
def add_bloom_filters(asked: AddRequest) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without touching a data page.

    ``paths`` are files, folders or globs.  ``columns`` maps column names to their options, or lists
    names; without it the policy's columns are taken.  ``keys`` defaults to the policy's KMS; a
    client of your own may be called from several threads.  Files are replaced atomically, or with
    ``in_place`` appended to, or with ``output`` written below another folder.  Several are done at
    a time, on at most ``jobs`` cores, by default all.  Many small files are shared by processes:
    each asks the policy's KMS itself, or gets ``keys`` over a socket if they can be pickled.  A
    file that fails is reported and does not stop the others.  A file also fails if it is protected
    less than the policy says (a weaker algorithm, shorter keys, a footer in clear), unless
    ``allow_unprotected`` is given.

    If the folder of a Delta table is given alone, a commit of its log changes the table, or a
    commit after every ``commit_every`` files.  New files beside the old ones take the place of live
    files without the wanted filters.  ``where`` chooses files by partition columns (``"day =
    '2026-11-20'"``), ``since`` those that came after a version.  Columns go by their logical names.

    Raises PolicyError or UnsupportedFeatureError before any file is written if the request itself
    cannot be met.  Examples are a column that no file has, an unknown master key, a table whose log
    cannot be honoured, and mistakes that a few of the files show, such as a BOOLEAN column.  A
    mistake that only another file shows fails that file.

    >>> sb.add_bloom_filters("new/", policy="keys/policy.toml")
    <AddReport: 1 file (1 added)>
    >>> sb.add_bloom_filters("plain/", columns={"email": 0.001})
    <AddReport: 1 file (1 added)>
    """
    # Listed once: the paths may come from a generator.
    paths = as_paths(asked.paths)
    asked = replace(asked, paths=paths)
    folder = delta_table(paths)
    if folder is None:
        refuse_options_of_tables(
            where=asked.where, since=asked.since, commit_every=asked.commit_every
        )
        return add_to_files(asked)
    return _add_to_table(folder, asked)


def _add_to_table(folder: str, asked: AddRequest) -> AddReport:
    """Write new files beside the live ones, and commit them in their places."""
    # Imported here, for tables alone: most runs are over files, and many are short.
    from secure_bloom.delta.add_run import open_run
    from secure_bloom.delta.selection import TableSelection
    from secure_bloom.delta.table_run import new_sizes, refuse_options_of_files

    refuse_options_of_files(folder, in_place=asked.in_place, output=asked.output is not None)
    chosen = TableSelection(where=asked.where, since=asked.since)
    run = open_run(folder, asked.filters(), chosen, commit_every=asked.commit_every)
    # Only changes: a file that has the wanted filters stays in the log as it is.
    mode = WriteMode(dry_run=asked.dry_run, only_changes=True)
    open_rewriter = asked.rewriter(run.request, mode)
    rewriter = open_rewriter()
    chunks = check_few(run.paths, run.request, rewriter.resolver)
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
        reports.extend(map(run.names.in_report, done))
        return new_sizes(done)

    change = run.rewrite(work, dry_run=asked.dry_run)
    told = tuple(_with_gone_files(reports, run.gone(change, reports)))
    notes = (*file_notes(told), *change.notes)
    return AddReport(files=told, notes=notes, dry_run=asked.dry_run, commits=change.commits)


def _with_gone_files(
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
