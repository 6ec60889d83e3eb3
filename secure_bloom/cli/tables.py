"""Reports as tables for a terminal; programs take ``--json``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.reader import ProbeReport, Verdict

if TYPE_CHECKING:
    from secure_bloom.inspection import ColumnInspection, FileInspection, InspectReport
    from secure_bloom.report import AddReport, FileReport, FilterReport

_WIDE = 240


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout."""
    click.echo(json.dumps(document, indent=2))


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Rows under headers; headers that end in ``>`` head columns of numbers."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # Off a terminal nobody wants a path cut to fit 80 columns.
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    table = Table(
        title=title and escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD
    )
    for header in headers:
        is_number = header.endswith(">")
        table.add_column(
            header.removesuffix(">"),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    for row in rows:
        table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    console.print(table)


def print_add_report(report: AddReport, *, verbose: bool) -> None:
    """What became of each file, then the sums."""
    headers = ("file", "status", "filters", "size before>", "size after>", "seconds>")
    print_table(headers, (_file_row(file) for file in report.files))
    if verbose:
        _print_filters(report)
    actions = Counter(f.action for file in report.files for f in file.filters)
    grown = sum((f.bytes_after or 0) - (f.bytes_before or 0) for f in report.files)
    counted = ", ".join(f"{count} {action}" for action, count in sorted(actions.items()))
    would = "would be " if report.dry_run else ""
    size = f"{human_bytes(abs(grown))} {'smaller' if grown < 0 else 'larger'}"
    click.echo(f"filters: {counted or 'none'}; the files {would or 'are '}{size}")
    remarks = {_remark(f) for file in report.files for f in file.filters} - {None}
    for line in (*sorted(remarks, key=str), *report.notes):
        click.echo(f"note: {line}")


def _file_row(file: FileReport) -> tuple[object, ...]:
    actions = Counter(f.action for f in file.filters)
    return (
        file.path,
        file.status,
        ", ".join(f"{count} {action}" for action, count in sorted(actions.items())),
        human_bytes(file.bytes_before),
        human_bytes(file.bytes_after),
        f"{file.seconds:.2f}",
    )


def _remark(report: FilterReport) -> str | None:
    """What the user should know of a filter that is not quite what was asked for."""
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
    headers = ("file", "row group>", "column", "action", "from", "values>", "bytes>", "fpp>", "key")
    print_table(
        headers,
        (
            (
                file.path,
                f.row_group,
                f.column,
                f.action,
                f.source,
                f.values,
                f.bytes,
                _percent(f.fpp),
                f.key or ("" if f.encrypted else "in clear"),
            )
            for file in report.files
            for f in file.filters
        ),
    )


def print_probe_report(report: ProbeReport, *, verbose: bool) -> None:
    """For each value how many row groups say what, and where it may be."""
    counts: dict[str, Counter[Verdict]] = {}
    places: dict[str, list[str]] = {}
    for file in report.files:
        for group in file.row_groups:
            for value, verdict in group.verdicts.items():
                counts.setdefault(str(value), Counter())[verdict] += 1
                if verdict is Verdict.MAYBE:
                    places.setdefault(str(value), []).append(f"{file.path}#{group.row_group}")
    headers = ("value", "absent>", "maybe>", "no filter>", "may be in (file#row group)")
    rows = []
    for value, count in counts.items():
        found = places.get(value, [])
        shown = found if verbose else found[:3]
        more = f" and {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        rows.append(
            (
                value,
                count[Verdict.ABSENT],
                count[Verdict.MAYBE],
                count[Verdict.NO_FILTER],
                "\n".join(shown) + more,
            )
        )
    title = f"row groups of {len(report.files)} files, by what the filter of {report.column} says"
    print_table(headers, rows, title=title)


def print_inspect_report(report: InspectReport, *, verbose: bool) -> None:
    """One table a file."""
    for file in report.files:
        if file.error is None:
            _print_file(file, verbose=verbose)
    for file, group, column in report.wrong:
        missed = column.bloom.missed if column.bloom else 0
        click.echo(
            f"wrong filter: {file.path}, row group {group.row_group}, column {column.column}: "
            f"misses {missed} values, queries lose rows; add --replace-filters mends it"
        )


def _print_file(file: FileInspection, *, verbose: bool) -> None:
    footer = f"{file.footer} footer"
    if file.algorithm:
        footer += f", {file.algorithm}, footer key {file.key or 'unnamed'}"
    groups = len(file.row_groups)
    content = "" if file.rows is None else f"; {file.rows} rows in {groups} row groups"
    click.echo(f"{file.path}: {footer}{content}")
    if file.note:
        click.echo(f"  note: {file.note}")
    headers = ("column", "type", "encrypted", "key", "filters", "bytes>", "fpp>", "bits set>")
    if not verbose:
        columns = zip(*(group.columns for group in file.row_groups), strict=True)
        if file.row_groups:
            print_table(headers, (_column_row(list(chunks)) for chunks in columns))
        return
    for group in file.row_groups:
        print_table(
            headers,
            (_column_row([column]) for column in group.columns),
            title=f"row group {group.row_group}, {group.rows} rows",
        )


def _column_row(chunks: list[ColumnInspection]) -> tuple[object, ...]:
    first = chunks[0]
    blooms = [chunk.bloom for chunk in chunks if chunk.bloom is not None]
    notes = sorted({chunk.note for chunk in chunks if chunk.note})
    have = f"{len(blooms)} of {len(chunks)}" if blooms or not notes else "?"
    return (
        first.column,
        first.type,
        first.encrypted.replace("_", " "),
        first.key,
        "; ".join([have, *notes]),
        sum(bloom.bytes or 0 for bloom in blooms) or None,
        _percent(max((b.fpp for b in blooms if b.fpp is not None), default=None)),
        _percent(max((b.fill for b in blooms if b.fill is not None), default=None)),
    )


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.3g} %"


def human_bytes(size: int | None) -> str | None:
    """A size as a person reads it, in powers of 1024."""
    if size is None:
        return None
    value, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "bytes" else f"{value:.1f} {units[0]}"
