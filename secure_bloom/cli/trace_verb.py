"""``secure-bloom trace``: where values of columns occur in files of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    with_access_to_read,
    with_common_options,
)
from secure_bloom.cli.terminal_tables import print_json, print_table
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import print_line, print_note
from secure_bloom.reports.text import counted, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from secure_bloom.tracing.column_words import ColumnWords
    from secure_bloom.tracing.report import TraceReport

EXIT_CLEAN, EXIT_FINDINGS = 0, 1
#: Without ``-v`` at most this number of files that were not read whole is named.
_NAMED = 5


@click.command("trace")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--values-of",
    multiple=True,
    required=True,
    metavar="TABLE:COLUMN",
    help="The column whose values are searched for. May be repeated.",
)
@click.option(
    "--parts",
    multiple=True,
    metavar="PART",
    help="A part of a value that counts as a value: local or domain of e-mails.",
)
@click.option(
    "--as-written",
    is_flag=True,
    help="Ask the tables' filters, and read only row groups that may have a word as it is written.",
)
@click.option("--memory", default="1GiB", metavar="SIZE", help="The most that values may take.")
@click.option("--jobs", type=int, metavar="N", help="Files searched at once.")
@with_access_to_read
@with_timeout
@with_common_options
def trace_command(
    files: tuple[str, ...], access: AccessOptions, as_json: bool, verbose: bool, **options: Any
) -> int:
    """Search FILE for values of columns of tables.

    Files and folders are searched whole, and opened: archives, packed files, Parquet, Arrow, ORC,
    Avro, SQLite.  Values are found in other capitals, groups and notations, encoded, and as
    digests.  No value is printed.

    \b
    secure-bloom trace dump.csv --values-of out/:email --policy keys/policy.toml
    secure-bloom trace backups/ --values-of out/:email --values-of out/:iban --json

    Exit code: 0 nothing found, 1 values found, or something not read or not searched for, 2 error.
    """
    from secure_bloom.api.trace import trace

    with progress_bar("searching", quiet=as_json) as progress:
        report = trace(files, progress=progress, **options, **access.arguments())
    if as_json:
        print_json(report.to_dict())
    else:
        print_trace_report(report, verbose=verbose)
    return EXIT_CLEAN if report.is_clean else EXIT_FINDINGS


def print_trace_report(report: TraceReport, *, verbose: bool) -> None:
    """Print where values were found, how many, and what was not read."""
    headers = ("file", "part", "column", "found>", "confirmed>", "of the column>", "")
    rows = [
        (file.path, it.place, it.column, it.passed, it.confirmed, f"{it.share:.2%}", it.verdict)
        for file in report.files
        for it in file.found
    ]
    searched = f"{counted(report.searched, 'file')}, {human_bytes(report.bytes)}"
    title = f"{searched}, {counted(report.asked, 'word')} asked"
    if rows:
        print_table(headers, rows, title=title)
    elif all(column.not_searched is not None for column in report.columns):
        print_line(f"{title}: no value was searched for")
    else:
        print_line(f"{title}: no value found")
    for column in report.columns:
        for note in _notes(column):
            print_note(f"{column.name}: {note}")
    unread = [(file.path, it) for file in report.files for it in file.unread]
    for path, part in unread if verbose else unread[:_NAMED]:
        where = f"{path}, {part.place}" if part.place else path
        print_note(f"{where}: not read: {part.reason}")
    if not verbose and len(unread) > _NAMED:
        left = len(unread) - _NAMED
        were = "was" if left == 1 else "were"
        print_note(f"{counted(left, 'more part')} {were} not read: -v names them")


def _notes(column: ColumnWords) -> Iterator[str]:
    """Yield notes on a column: what was not searched for, and in which way values were found."""
    if column.not_searched is not None:
        yield f"no value was searched for: {column.not_searched}"
    yield from column.partly_searched()
    if not column.is_whole:
        yield (
            "--memory is too small for the words of the files that may be values: not all were "
            "searched for"
        )
    elif column.is_estimated:
        yield (
            "the values do not fit into --memory: they and the files were read twice, and the "
            "share of the column is an estimate"
        )
    if column.as_written:
        yield "values in other capitals and as digests were not searched for"
