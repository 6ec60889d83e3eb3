"""Reports as tables for a terminal; programs take ``--json``."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from secure_bloom.bloom.probe import ProbeReport, Verdict

if TYPE_CHECKING:
    from secure_bloom.adding.report import AddReport, FileAddReport, FilterReport
    from secure_bloom.hudi.record_keys.description import RecordKeyDescription
    from secure_bloom.inspection import ColumnInspection, FileInspection, InspectReport
    from secure_bloom.paimon.index_description import PaimonInspection

_WIDE = 240
_NAME_LENGTH = 26


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout."""
    click.echo(json.dumps(document, indent=2))


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Rows under headers; headers that end in ``>`` head columns of numbers.  Cells never wrap."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # Off a terminal nobody wants a path cut to fit 80 columns.
    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    table = Table(
        title=title and escape(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for header in headers:
        justify: Literal["left", "right"] = "right" if header.endswith(">") else "left"
        table.add_column(header.removesuffix(">"), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
    console.print(table)


def print_add_report(report: AddReport, *, verbose: bool) -> None:
    """What became of each file, then the sums."""
    headers = ("file", "status", "filters", "before>", "after>", "seconds>")
    names = short_names([file.path for file in report.files])
    print_table(headers, (_file_row(file, names[file.path]) for file in report.files))
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


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """What a terminal shows of each path: without a folder that is the same for all, and short."""
    if not sys.stdout.isatty():
        return {path: path for path in paths}
    folders = {path.rpartition("/")[0] for path in paths}
    common = f"{folders.pop()}/" if len(folders) == 1 else ""
    return {path: _shortened(path.removeprefix(common)) for path in paths}


def _shortened(name: str) -> str:
    """The name with its middle left out, where it is long."""
    if len(name) <= _NAME_LENGTH:
        return name
    tail = _NAME_LENGTH // 3
    return f"{name[: _NAME_LENGTH - tail - 1]}…{name[-tail:]}"


def _file_row(file: FileAddReport, name: str) -> tuple[object, ...]:
    actions = Counter(f.action for f in file.filters)
    return (
        name,
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
    headers = ("row group>", "column", "action", "from", "values>", "bytes>", "fpp>", "key")
    for file in report.files:
        rows = [
            (
                f.row_group,
                f.column,
                f.action,
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


def print_probe_report(report: ProbeReport, *, verbose: bool) -> None:
    """For each value how many row groups say what, and where it may be."""
    counts: dict[str, Counter[Verdict]] = {}
    places: dict[str, list[str]] = {}
    for file in report.files:
        for group in file.row_groups:
            for value, verdict in group.verdicts.items():
                counts.setdefault(str(value), Counter())[verdict] += 1
                if verdict is Verdict.MAYBE:
                    place = f"{file.path}, row group {group.row_group}"
                    places.setdefault(str(value), []).append(place)
    headers = ("value", *(f"{verdict.replace('_', ' ')}>" for verdict in Verdict))
    rows = ((value, *(count[verdict] for verdict in Verdict)) for value, count in counts.items())
    title = f"row groups of {len(report.files)} files, by what the filter of {report.column} says"
    print_table(headers, rows, title=title)
    for value, found in places.items():
        _print_places(value, found, limit=None if verbose else 5)


def _print_places(value: str, found: list[str], *, limit: int | None) -> None:
    click.echo(f"{value} may be in")
    for place in found[:limit]:
        click.echo(f"  {place}")
    if limit is not None and len(found) > limit:
        click.echo(f"  and {len(found) - limit} more row groups: -v names them all")


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
    if file.hudi is not None:
        click.echo(f"  Hudi record keys: {_record_keys(file.hudi)}")
    if file.paimon is not None:
        click.echo(f"  Paimon index: {_paimon_index(file.paimon)}")
    columns = [column for group in file.row_groups for column in group.columns]
    notes = {f"column {column.column}: {column.note}" for column in columns if column.note}
    for note in (*([file.note] if file.note else []), *sorted(notes)):
        click.echo(f"  note: {note}")
    headers = ("column", "type", "key", "filters", "bytes>", "fpp>", "bits set>")
    if not verbose:
        by_column = zip(*(group.columns for group in file.row_groups), strict=True)
        if file.row_groups:
            print_table(headers, (_column_row(list(chunks)) for chunks in by_column))
        return
    for group in file.row_groups:
        print_table(
            headers,
            (_column_row([column]) for column in group.columns),
            title=f"row group {group.row_group}, {group.rows} rows",
        )


def _record_keys(told: RecordKeyDescription) -> str:
    """The filter and the range of record keys, in a line."""
    ends = "key range" if told.range else "no key range"
    if told.type is None:
        damage = told.note and f"filter that cannot be read: {told.note}"
        return f"{damage or 'no filter'}; {ends}"
    size, rows = human_bytes(told.bytes), "1 row" if told.rows == 1 else f"{told.rows} rows"
    return f"{told.type} filter of {size} in {rows}, fpp {percent(told.fpp)}; {ends}"


def _paimon_index(told: PaimonInspection) -> str:
    """The indexes of columns, and what they are in, in a line."""
    if told.error is not None:
        return f"cannot be read: {told.error}"
    columns = ", ".join(f"{visible(each.column)} ({visible(each.type)})" for each in told.indexes)
    return f"{human_bytes(told.bytes)} in clear beside the file: {columns or 'no columns'}"


_KEY_PLACES = {"no": "in clear", "footer_key": "{key} (footer)", "column_key": "{key}"}


def _column_row(chunks: list[ColumnInspection]) -> tuple[object, ...]:
    first = chunks[0]
    blooms = [chunk.bloom for chunk in chunks if chunk.bloom is not None]
    unknown = not blooms and any(chunk.note for chunk in chunks)
    have = "?" if unknown else f"{len(blooms)} of {len(chunks)}"
    return (
        first.column,
        # The logical type says more to a person than how it is stored.
        first.type.rpartition(" ")[2].lower(),
        _KEY_PLACES[first.encrypted].format(key=first.key or "unnamed"),
        have,
        sum(bloom.bytes or 0 for bloom in blooms) or None,
        percent(max((b.fpp for b in blooms if b.fpp is not None), default=None)),
        percent(max((b.fill for b in blooms if b.fill is not None), default=None)),
    )


def percent(share: float | None) -> str | None:
    """A share as a person reads it."""
    return None if share is None else f"{100 * share:.3g} %"


def human_bytes(size: int | None) -> str | None:
    """A size as a person reads it, in powers of 1024."""
    if size is None:
        return None
    value, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def visible(text: str | None) -> str | None:
    """A text from a file, which anybody may have written, as a terminal may show it."""
    return text and "".join(c if c.isprintable() else "\ufffd" for c in text)
