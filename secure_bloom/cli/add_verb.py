"""``secure-bloom add``: add filters to Parquet files that are already written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.column_settings import parse_columns
from secure_bloom.cli.exit_codes import print_and_exit_code, print_outcome, report_lost
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.shared_arguments import (
    load_keys,
    load_policy,
    metrics_option,
    policy_option,
    with_common_options,
    with_jobs_option,
    with_table_options,
    with_unprotected_option,
)
from secure_bloom.cli.terminal_tables import (
    percent,
    print_files,
    print_table,
    short_names,
    shown_paths,
)
from secure_bloom.cli.verbosity import print_line, print_notes
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.reports.text import counted, human_bytes, legible, named_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from secure_bloom.adding.report import AddReport, CostEstimate, FileAddReport, FilterReport
    from secure_bloom.runs.target import TableCommit


@click.command("add")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML): which columns get filters, under which keys.")
@click.option(
    "-c",
    "--column",
    "column_texts",
    multiple=True,
    metavar="NAME[:fpp=F][:max_bytes=N]",
    help="A column that gets filters, instead of the policy's; 'customer.*' means all of a "
    "structure. May be repeated.",
)
@click.option(
    "-o", "--output", metavar="DIR", help="Write new files below DIR. The old files stay."
)
@click.option("--in-place", is_flag=True, help="Append to the files instead of copying their data.")
@click.option("--replace-filters", is_flag=True, help="Build existing filters anew.")
@with_table_options
@click.option(
    "-n",
    "--dry-run",
    is_flag=True,
    help="Write nothing. Report what a run would do, and estimate what it costs.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --dry-run: plan N files, chosen at random. By default all of up to 1,000, and 128 "
    "of more.",
)
@click.option(
    "--advise", "with_advice", is_flag=True, help="With --dry-run: say which columns gain, too."
)
@with_jobs_option
@metrics_option
@with_unprotected_option
@with_common_options
def add_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    column_texts: tuple[str, ...],
    dry_run: bool,
    with_advice: bool,
    allow_unprotected: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
    metrics: Path | None,
    **options: Any,
) -> int:
    """Add Bloom filters to Parquet files. No data page is changed.

    PATH is a file, a folder or a glob.  Files are replaced atomically (or appended to, with
    --in-place); a file that fails does not stop the others.  A Delta table, given alone, gets new
    files beside the old ones, and a commit.

    \b
    secure-bloom add out/ --policy keys/policy.toml
    secure-bloom add out/ --column email:fpp=0.01 --keyring keys/dev-keyring.json
    secure-bloom add out/ --column id --dry-run --json
    secure-bloom add out/ --column id --dry-run --advise
    secure-bloom add lake/events --column id --since 41 --where "day = '2026-11-20'"

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.add import add_bloom_filters
    from secure_bloom.lakes.output_rules import require_report_file

    if with_advice and not dry_run:
        raise PolicyError(
            "--advise is for a dry run", hint="add --dry-run, or run `secure-bloom advise` alone"
        )
    require_report_file(metrics, policy_path, keyring)
    access: dict[str, Any] = {
        "policy": load_policy(policy_path),
        "keys": load_keys(keyring),
        "allow_unprotected": allow_unprotected,
    }
    with progress_bar("adding filters", quiet=as_json) as progress:
        report = add_bloom_filters(
            paths,
            columns=parse_columns(column_texts),
            dry_run=dry_run,
            progress=progress,
            **access,
            **options,
        )
    if report.failed:
        from secure_bloom.cli.runnable_hints import with_runnable_hints

        report = with_runnable_hints(report, paths, access["policy"], policy_path, keyring)
    numbers = _numbers(report)
    if with_advice and not report.failed and not report.commits:
        report = _advised(report, paths, **access)
    try:
        return print_and_exit_code(report, print_add_report, as_json=as_json, verbose=verbose)
    finally:
        if metrics is not None:
            _write_metrics(metrics, numbers, report)


def _write_metrics(
    target: Path, numbers: Mapping[str, tuple[float, str]], report: AddReport
) -> None:
    """Write the numbers. Raises ReportLostError if a run that has written files loses them."""
    from secure_bloom.storage.output_files import write_metrics

    try:
        write_metrics(target, "add", numbers)
    except PolicyError as error:
        if report.dry_run:
            raise
        raise report_lost(report, str(error)) from error


def _numbers(report: AddReport) -> dict[str, tuple[float, str]]:
    """Return the numbers of a run for Prometheus."""
    totals = report.totals
    statuses, actions = totals["statuses"], totals["filters"]
    return {
        **{
            f'files{{status="{status}"}}': (statuses.get(status, 0), "Files of the run.")
            for status in ("added", "unchanged", "failed")
        },
        **{
            f'filters{{action="{action}"}}': (actions.get(action, 0), "Filters of the run.")
            for action in ("added", "kept", "replaced", "skipped")
        },
        "filter_bytes": (totals["filter_bytes"], "Bytes of the filters that were written."),
        "grown_bytes": (
            totals["bytes_after"] - totals["bytes_before"],
            "Bytes by which the files are larger.",
        ),
        "failures": (len(report.failed), "Files that failed."),
        "seconds": (report.seconds, "Duration of the run."),
        "dry_run": (int(report.dry_run), "1 if nothing was written."),
        "finished_timestamp_seconds": (time.time(), "When the run ended, in Unix time."),
    }


def _advised(report: AddReport, paths: tuple[str, ...], **access: Any) -> AddReport:
    """Return the report of a dry run, with notes on how much lookups would gain."""
    notes = _advice_notes(paths, _new_filters(report), **access)
    return replace(report, notes=(*report.notes, *notes))


def _advice_notes(
    paths: tuple[str, ...], columns: Mapping[str, float], **access: Any
) -> Iterator[str]:
    """Yield sentences on whether lookups gain from filters of these columns with their fpp."""
    if not columns:
        yield "every wanted filter is there: `secure-bloom advise` says what lookups gain by them"
        return
    # Imported here: it takes the reader too.
    from secure_bloom.api.advise import advise

    for fpp in dict.fromkeys(columns.values()):
        names = [name for name, wanted in columns.items() if wanted == fpp]
        try:
            advice = advise(paths, columns=names, fpp=fpp, **access)
        except SecureBloomError as error:
            # Filters can be added to some files that cannot be read as a table.
            yield f"whether {named_columns(names)} gains is not known: {error}"
            continue
        for column in advice.columns:
            verdict = "gains" if column.gains else "gains nothing"
            yield f"column {legible(column.column)} {verdict}: {column.reason}"


def _new_filters(report: AddReport) -> dict[str, float]:
    """Return the columns that are to get filters, and their false-positive probability."""
    return {
        filter_.column: filter_.fpp_requested
        for file in report.files
        for filter_ in file.filters
        if filter_.action == "added" and filter_.fpp_requested is not None
    }


def print_commits(
    commits: Iterable[TableCommit], *, dry_run: bool, sizes_are_known: bool = True
) -> None:
    """Print a line for each commit."""
    from secure_bloom.runs.target import SNAPSHOT

    for commit in commits:
        # A snapshot of Iceberg gets its id when it is written, so a dry run has none.
        kind = "snapshot" if commit.operation == SNAPSHOT else "version"
        version = f"a new {kind}" if commit.version is None else f"{kind} {commit.version}"
        restated = int(commit.metrics.get("numUpdatedStatistics", 0))
        print_line(
            f"{'would be ' if dry_run else 'committed '}{version}: "
            f"{commit.operation}, {counted(len(commit.files), 'file')} replaced, "
            f"{human_bytes(commit.bytes_removed)}"
            + (f" by {human_bytes(commit.bytes_added)}" if sizes_are_known else "")
            + (f", bounds of {counted(restated, 'other file')} dropped" if restated else "")
        )


def print_add_report(report: AddReport, *, verbose: bool) -> None:
    """Print one row for each file, then the sums."""
    headers = ("file", "status", "filters", "before>", "after>", "seconds>")
    shown = shown_paths(report.files)
    names = short_names(list(shown.values()))
    rows = [
        _file_row(file, names[shown[file.path]], dry_run=report.dry_run) for file in report.files
    ]
    print_files(headers, rows, verbose=verbose)
    if verbose:
        _print_filters(report)
    totals = report.totals
    grown = totals["bytes_after"] - totals["bytes_before"]
    would = "would be " if report.dry_run else ""
    counts = ", ".join(
        f"{count:,} {_told(action, dry_run=report.dry_run)}"
        for action, count in sorted(totals["filters"].items())
    )
    size = f"{human_bytes(abs(grown))} {'smaller' if grown < 0 else 'larger'}"
    grows = f"{would or 'are '}{size}" if grown else "keep their size"
    statuses = Counter(map(_status, report.files))
    print_outcome({**totals, "statuses": statuses}, report.seconds, dry_run=report.dry_run)
    print_line(f"filters: {counts or 'none'}; the files {grows}")
    print_commits(report.commits, dry_run=report.dry_run)
    if report.estimate is not None:
        _print_estimate(report.estimate)
    filters = (filter_ for file in report.files for filter_ in file.filters)
    print_notes((*_remarks(filters), *report.notes), verbose=verbose)


def _print_estimate(cost: CostEstimate) -> None:
    """Print what a run on all files costs, by the sample of them that was planned."""
    sure = f", give or take {cost.margin:.0%}" if cost.margin else ""
    print_line(
        f"estimate for {counted(cost.files, 'file')} of {human_bytes(cost.bytes)}, "
        f"from {cost.sampled_files:,} of them:"
    )
    hours = ", ".join(f"{_duration(time)} on {cores}" for cores, time in cost.hours.items())
    driver, process = human_bytes(cost.driver_memory), human_bytes(cost.process_memory)
    change = (
        f"{human_bytes(cost.bytes_added)} are added"
        if cost.bytes_added >= 0
        else f"{human_bytes(-cost.bytes_added)} less: more dead bytes go than filters come"
    )
    print_line(f"  {change} ({cost.share_added:.2%}{sure})")
    print_line(f"  {counted(cost.requests, 'request')}, if the files are in an object store")
    print_line(f"  {_duration(cost.cpu_hours)} of CPU time: {hours} cores")
    print_line(f"  memory: {driver} of a driver on Spark, {process} of one process here")


def _duration(hours: float) -> str:
    seconds = hours * 3600
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "less than 0.1 s"
    return f"{seconds / 60:.0f} min" if hours < 2 else f"{hours:,.1f} h"


def _file_row(file: FileAddReport, name: str, *, dry_run: bool) -> tuple[object, ...]:
    actions = Counter(f.action for f in file.filters)
    return (
        name,
        f"would be {_status(file)}" if dry_run and file.changes else _status(file),
        ", ".join(f"{count} {_told(it, dry_run=dry_run)}" for it, count in sorted(actions.items())),
        human_bytes(file.bytes_before),
        human_bytes(file.bytes_after),
        f"{file.seconds:.2f}",
    )


def _status(file: FileAddReport) -> str:
    """Return the status for people: a file whose new filters all had a forerunner is "replaced"."""
    actions = {filter_.action for filter_ in file.filters}
    return (
        "replaced"
        if file.changes and actions & {"added", "replaced"} == {"replaced"}
        else file.status
    )


def _told(action: str, *, dry_run: bool) -> str:
    return f"would be {action}" if dry_run and action in ("added", "replaced") else action


def _remarks(filters: Iterable[FilterReport]) -> Iterator[str]:
    """Yield what differs from the request: one sentence for all columns of which it is true."""
    columns: dict[str, set[str]] = {}
    for filter_ in filters:
        if (remark := _remark(filter_)) is not None:
            columns.setdefault(remark, set()).add(filter_.column)
    for remark, names in sorted(columns.items(), key=lambda it: (sorted(it[1]), it[0])):
        count = f"{len(names):,} " if len(names) > 1 else ""
        yield f"{count}{named_columns(sorted(names))}{remark}"


def _remark(report: FilterReport) -> str | None:
    """Return how a filter differs from the request, to follow its column's name, or None."""
    if report.action == "skipped":
        return f", missing in some files: {report.reason}"
    if report.action == "replaced" and report.reason:
        return f", filters that were replaced: {report.reason}"
    if report.reason and (report.fpp or 0.0) > (report.fpp_requested or 1.0):
        return (
            f": false positives above the {report.fpp_requested:.3g} "
            f"asked for in some row groups: {report.reason}"
            + ("; --replace-filters builds it again" if report.action == "kept" else "")
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
            print_table(headers, rows, title=file.new_path or file.path)
