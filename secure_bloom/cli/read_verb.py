"""``secure-bloom read``: rows of tables through their filters, or a report on what was read."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.inputs import read_parameters, read_text
from secure_bloom.cli.row_formats import (
    TABLE_ROWS,
    format_of,
    output_file,
    print_written,
    rows_of,
    with_row_options,
    write_rows,
)
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    once,
    print_hidden,
    where_option,
    with_access_to_read,
    with_common_options,
    with_missing_keys,
    with_table_version,
)
from secure_bloom.cli.terminal_tables import is_too_wide, print_json, print_table, short_names
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import print_line, print_note
from secure_bloom.errors import PolicyError
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import Predicate
from secure_bloom.reading.rows.python_texts import json_of
from secure_bloom.reports.text import counted, human_bytes, legible

if TYPE_CHECKING:
    from secure_bloom.reading import FileReadReport, ReadReport, TableRead


@click.command("read")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@where_option("The rows to read, by default all.")
@click.option("--where-from", metavar="FILE", help="The condition from a file; - is stdin.")
@click.option(
    "--parameters",
    metavar="FILE",
    help='Values of :name in the condition: {"name": value} in JSON; - is stdin.',
)
@click.option(
    "--columns",
    multiple=True,
    callback=once,
    metavar="A,B",
    help="The columns to read, by default all.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N rows.")
@click.option(
    "--explain",
    is_flag=True,
    help="Say what was skipped and why, instead of the rows; with --output they are written too.",
)
@click.option("--plan-only", is_flag=True, help="With --explain: plan, and read no row.")
@with_row_options
@with_access_to_read
@click.option(
    "--without-filter-keys",
    is_flag=True,
    help="Ignore conditions whose column's key is missing: some rows may not match them. "
    "Not with --missing-keys null or drop.",
)
@with_missing_keys
@with_timeout
@with_table_version
@with_common_options
def read_command(
    paths: tuple[str, ...],
    where: str | None,
    where_from: str | None,
    parameters: str | None,
    columns: str | None,
    limit: int | None,
    explain: bool,
    plan_only: bool,
    form: str | None,
    output: str | None,
    for_spreadsheets: bool,
    access: AccessOptions,
    without_filter_keys: bool,
    missing_keys: str,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Read the rows of PATH for which a condition is true.

    Names of folders, statistics, dictionaries, Bloom filters and page indexes rule out parts of
    files, which are then neither read nor decrypted.  Texts in a condition are in single quotes,
    names with spaces in double ones; there are =, !=, <, <=, >, >=, in (...), not in (...), is
    null, is not null, and, or, not.  Put secret values into a file: arguments can
    be seen by others.

    \b
    secure-bloom read out/ --where "email = 'a@example.com' and country in ('it', 'no')"
    secure-bloom read out/ --where "id = 42" --columns id,email --output found.parquet
    secure-bloom read out/ --where "id = 42" --explain
    secure-bloom read out/ --where "email = :email" --parameters wanted.json

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.reading import ReadRequest, Table

    file = output_file(output, stdout_is_free=not (explain or as_json))
    form = None if (explain or as_json) and file is None else format_of(form, file)
    cut = form == "table" and (limit is None or limit > TABLE_ROWS)
    request = ReadRequest(
        paths,
        where=_condition(where, where_from, parameters),
        columns=None if columns is None else column_names(columns),
        limit=TABLE_ROWS + 1 if cut else limit,
        **access.arguments(),
        **at,
        without_filter_keys=without_filter_keys,
        missing_keys=missing_keys,
    )
    with Table(request) as table:
        if file is not None and form is not None:
            note = table.refuse_output(file, form)
            if note is not None:
                print_note(note, err=True)
        read = table.ask(request, explain=explain)
    if not explain:
        hidden = read.request.hidden.largest(read.request.schema)
        print_hidden(map(".".join, sorted(hidden)), missing_keys)
    if plan_only:
        return _plan(read, explain=explain, output=output, as_json=as_json, verbose=verbose)
    writing = partial(write_rows, for_spreadsheets=for_spreadsheets)
    document = _carry_out(read, form, file, writing, keep=as_json and not explain)
    if file is not None and not as_json:
        print_written(document["rows"], file)
    if as_json:
        _print_document(document, read.report() if explain else None)
    elif explain:
        print_report(read.report(), verbose=verbose)
    return 0


def _condition(where: str | None, source: str | None, parameters: str | None) -> Predicate | None:
    if where is not None and source is not None:
        raise PolicyError("--where and --where-from both give the condition")
    if {source, parameters} == {"-"}:
        raise PolicyError("the condition and its parameters cannot both come from stdin")
    text = where if source is None else read_text(source)
    values = None if parameters is None else read_parameters(parameters)
    if text is None and values is not None:
        raise PolicyError("--parameters without a condition", hint="give one by --where")
    return None if text is None else from_text(text, values)


def _plan(
    read: TableRead, *, explain: bool, output: str | None, as_json: bool, verbose: bool
) -> int:
    if not explain or output is not None:
        raise PolicyError("--plan-only needs --explain, and cannot be combined with --output")
    report = read.planned()
    if as_json:
        print_json({"rows": None, "explain": report.to_dict()})
    else:
        print_report(report, verbose=verbose)
    return 0


def column_names(text: str) -> list[str]:
    """Return the names in ``A,B``. A name with a comma is in double quotes."""
    found = [name.strip() for row in csv.reader([text], skipinitialspace=True) for name in row]
    if not found or not all(found):
        raise PolicyError(
            "--columns has an empty name", hint="write --columns id,email, or leave it out for all"
        )
    return found


def _carry_out(
    read: TableRead,
    form: str | None,
    output: Path | None,
    write: Callable[..., int],
    *,
    keep: bool,
) -> dict[str, Any]:
    """Write the rows, keep them for the document, or only count them."""
    if form is not None:
        count = write(form, read.schema, read.batches(), output)
        return {"rows": count, "output": None if output is None else str(output)}
    found = []
    count = 0
    for batch in read.batches():
        count += batch.num_rows
        if keep:
            found += [json_of(row) for row in rows_of(batch)]
    return {"rows": count} | ({"data": found} if keep else {})


def _print_document(document: dict[str, Any], report: ReadReport | None) -> None:
    print_json(document if report is None else {**document, "explain": report.to_dict()})


#: The most files that are listed without -v.
_SHOWN_FILES = 20


def print_report(report: ReadReport, *, verbose: bool) -> None:
    """Print what was read and why, and advice. Then print the files."""
    for line in report.lines:
        print_line(line)
    for note, count in Counter(note for file in report.files for note in file.notes).items():
        print_note(f"{note} ({counted(count, 'file')})")
    _print_files(report, verbose=verbose)


def _print_files(report: ReadReport, *, verbose: bool) -> None:
    names = short_names([file.path for file in report.files])
    shown = report.files if verbose else report.files[:_SHOWN_FILES]
    headers = ("file", "row groups>", "read>", "skipped by", "bytes>")
    rows = [
        (
            legible(names[file.path]),
            len(file.row_groups),
            sum(group.skipped_by is None for group in file.row_groups),
            _skipped(file),
            human_bytes(file.bytes_read),
        )
        for file in shown
    ]
    if is_too_wide(headers, rows):
        for name, row_groups, read, skipped, size in rows:
            print_line(str(name))
            print_line(f"  {read} of {row_groups} read, {size}")
            if skipped:
                print_line(f"  skipped by {skipped}")
    else:
        print_table(headers, rows)
    if len(shown) < len(report.files):
        more = counted(len(report.files) - len(shown), "more file")
        print_line(f"and {more}: -v names them all")
    if verbose:
        for file in report.files:
            _print_row_groups(file)


def _skipped(file: FileReadReport) -> str:
    counts = Counter(g.skipped_by for g in file.row_groups if g.skipped_by is not None)
    return ", ".join(f"{step} {count}" for step, count in counts.items())


def _print_row_groups(file: FileReadReport) -> None:
    print_line(legible(file.path))
    for group in file.row_groups:
        became = "read" if group.skipped_by is None else f"skipped by {group.skipped_by}"
        print_line(f"  row group {group.row_group}, {counted(group.rows, 'row')}: {became}")
        for note in group.notes:
            step = "" if note.step is None else f"{note.step}: "
            print_line(f"    {legible(note.column)}, {step}{note.text}")
