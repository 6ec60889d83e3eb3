"""Print the report of ``secure-bloom add``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from secure_bloom.cli.terminal_tables import percent, print_files, print_table, short_names
from secure_bloom.cli.verbosity import tell, tell_note
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport, TableCommit


def print_commits(commits: Iterable[TableCommit], *, dry_run: bool) -> None:
    """A line for each commit."""
    for commit in commits:
        removed, added = commit.metrics["numRemovedBytes"], commit.metrics["numAddedBytes"]
        restated = int(commit.metrics.get("numUpdatedStatistics", 0))
        tell(
            f"{'would be ' if dry_run else 'committed '}version {commit.version}: "
            f"{commit.operation}, {counted(len(commit.files), 'file')} replaced, "
            f"{human_bytes(int(removed))} by {human_bytes(int(added))}"
            + (f", bounds of {counted(restated, 'other file')} dropped" if restated else "")
        )


def print_add_report(report: AddReport, *, verbose: bool) -> None:
    """One row for each file, then the sums."""
    headers = ("file", "status", "filters", "before>", "after>", "seconds>")
    names = short_names([file.path for file in report.files])
    rows = [_file_row(file, names[file.path], dry_run=report.dry_run) for file in report.files]
    print_files(headers, rows, verbose=verbose)
    if verbose:
        _print_filters(report)
    actions = Counter(f.action for file in report.files for f in file.filters)
    grown = sum((f.bytes_after or 0) - (f.bytes_before or 0) for f in report.files)
    would = "would be " if report.dry_run else ""
    told = ", ".join(
        f"{count:,} {_told(action, dry_run=report.dry_run)}"
        for action, count in sorted(actions.items())
    )
    size = f"{human_bytes(abs(grown))} {'smaller' if grown < 0 else 'larger'}"
    grows = f"{would or 'are '}{size}" if grown else "keep their size"
    tell(f"filters: {told or 'none'}; the files {grows}")
    print_commits(report.commits, dry_run=report.dry_run)
    remarks = {_remark(f) for file in report.files for f in file.filters} - {None}
    for line in (*sorted(remarks, key=str), *report.notes):
        tell_note(line)


def _file_row(file: FileAddReport, name: str, *, dry_run: bool) -> tuple[object, ...]:
    actions = Counter(f.action for f in file.filters)
    return (
        name,
        f"would be {file.status}" if dry_run and file.changes else file.status,
        ", ".join(f"{count} {_told(it, dry_run=dry_run)}" for it, count in sorted(actions.items())),
        human_bytes(file.bytes_before),
        human_bytes(file.bytes_after),
        f"{file.seconds:.2f}",
    )


def _told(action: str, *, dry_run: bool) -> str:
    return f"would be {action}" if dry_run and action in ("added", "replaced") else action


def _remark(report: FilterReport) -> str | None:
    """Return a remark about a filter that differs from the request."""
    if report.action == "skipped":
        return f"column {report.column} is missing in some files: {report.reason}"
    if report.action == "replaced" and report.reason:
        return f"column {report.column}, filters that were replaced: {report.reason}"
    if report.reason and (report.fpp or 0.0) > (report.fpp_requested or 1.0):
        return (
            f"column {report.column}: false positives above the {report.fpp_requested:.3g} "
            f"asked for in some row groups: {report.reason}"
        )
    return None


def _print_filters(report: AddReport) -> None:
    headers = ("row group>", "column", "action", "from", "values>", "bytes>", "fpp>", "key")
    for file in report.files:
        rows = [
            (
                f.row_group,
                f.column,
                _told(f.action, dry_run=report.dry_run),
                f.source,
                f.values,
                f.bytes,
                percent(f.fpp),
                f.key or ("" if f.encrypted else "in clear"),
            )
            for f in file.filters
        ]
        if rows:
            print_table(headers, rows, title=file.path)
