"""``secure-bloom read``: rows of tables through their filters, and why it took what it took."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.arguments import load_keys, load_policy, with_common_options
from secure_bloom.cli.rows import FORMATS, TABLE_ROWS, format_of, json_of, rows_of, write_rows

if TYPE_CHECKING:
    from secure_bloom.reading import FileReport, ReadReport, TableRead

_PATH = click.Path(path_type=Path)
#: Files that are told of one by one without -v.
_SHOWN_FILES = 20


@click.command("read")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--where", metavar="TEXT", help="Which rows; all unless given.")
@click.option("--columns", metavar="A,B", help="Which columns; all unless given.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N rows.")
@click.option("--explain", is_flag=True, help="Say what was skipped and why, instead of the rows.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="How to write rows; a table on a terminal, CSV elsewhere, or by the output's name.",
)
@click.option("--output", type=_PATH, metavar="FILE", help="Where to write rows, in clear.")
@click.option("--policy", "policy_path", type=_PATH, help="For its [kms].")
@click.option(
    "--without-filter-keys",
    is_flag=True,
    help="Leave conditions out whose column's key is missing: rows come that may not match.",
)
@with_common_options
def read_command(
    paths: tuple[str, ...],
    where: str | None,
    columns: str | None,
    limit: int | None,
    explain: bool,
    form: str | None,
    output: Path | None,
    policy_path: Path | None,
    without_filter_keys: bool,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Read the rows of PATH for which a condition is true.

    What folders' names, statistics, dictionaries, Bloom filters and page indexes rule out is not
    read, and not decrypted.  Texts in a condition stand in single quotes, names with spaces in
    double ones; there are =, !=, <, <=, >, >=, in (...), not in (...), is null, is not null, and,
    or, not.

    \b
    secure-bloom read out/ --where "email = 'a@example.com' and country in ('it', 'no')"
    secure-bloom read out/ --where "id = 42" --columns id,email --output found.parquet
    secure-bloom read out/ --where "id = 42" --explain

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.reading import TableRead

    form = None if (explain or as_json) and output is None else format_of(form, output)
    cut = form == "table" and (limit is None or limit > TABLE_ROWS)
    read = TableRead(
        paths,
        where=where,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        limit=TABLE_ROWS + 1 if cut else limit,
        keys=load_keys(keyring, load_policy(policy_path)),
        without_filter_keys=without_filter_keys,
        explain=explain,
    )
    document = _carry_out(read, form, output, keep=as_json and not explain)
    if as_json:
        _print_document(document, read.report() if explain else None)
    elif explain:
        print_report(read.report(), verbose=verbose)
    return 0


def _carry_out(
    read: TableRead, form: str | None, output: Path | None, *, keep: bool
) -> dict[str, Any]:
    """Write the rows, keep them for the document, or only count them."""
    if form is not None:
        count = write_rows(form, read.schema, read.batches(), output)
        return {"rows": count, "output": None if output is None else str(output)}
    found = []
    count = 0
    for batch in read.batches():
        count += batch.num_rows
        if keep:
            found += [json_of(row) for row in rows_of(batch)]
    return {"rows": count} | ({"data": found} if keep else {})


def _print_document(document: dict[str, Any], report: ReadReport | None) -> None:
    from secure_bloom.cli.tables import print_json

    print_json(document if report is None else {**document, "explain": report.to_json()})


def print_report(report: ReadReport, *, verbose: bool) -> None:
    """What was skipped and why, then the files."""
    from secure_bloom.cli.tables import human_bytes

    total = sum(len(file.row_groups) for file in report.files)
    share = 100 * report.bytes_read / max(1, report.bytes_full_scan)
    click.echo(f"rows:       {report.rows:,}")
    click.echo(f"row groups: {report.row_groups_read:,} of {total:,} read")
    for step, count in report.skipped.items():
        click.echo(f"            {count:,} skipped by {step}")
    click.echo(
        f"bytes:      {human_bytes(report.bytes_read)} of "
        f"{human_bytes(report.bytes_full_scan)} that a full scan reads ({share:.1f} %)"
    )
    steps = ", ".join(f"{step} {spent:.2f}" for step, spent in report.seconds.items())
    click.echo(f"seconds:    {steps}")
    for line in _reasons(report):
        click.echo(f"not skipped: {line}")
    for file in report.files:
        for note in file.notes:
            click.echo(f"note: {file.path}: {note}")
    _print_files(report, verbose=verbose)


def _reasons(report: ReadReport) -> list[str]:
    """Why row groups were read, by column and step, with their numbers."""
    counts: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], str] = {}
    for file in report.files:
        for group in file.row_groups:
            if group.skipped_by is None:
                for note in group.notes:
                    # Notes differ by numbers only: the first stands for all.
                    key = (note.column, f"{note.step or ''}{note.text.split(':')[0]}")
                    counts[key] += 1
                    step = "" if note.step is None else f"{note.step}: "
                    samples.setdefault(key, f"{note.column}, {step}{note.text}")
    return [f"{samples[key]} ({count:,} row groups)" for key, count in counts.items()]


def _print_files(report: ReadReport, *, verbose: bool) -> None:
    from secure_bloom.cli.tables import human_bytes, print_table, short_names

    names = short_names([file.path for file in report.files])
    shown = report.files if verbose else report.files[:_SHOWN_FILES]
    headers = ("file", "row groups>", "read>", "skipped by", "bytes>")
    rows = [
        (
            names[file.path],
            len(file.row_groups),
            sum(group.skipped_by is None for group in file.row_groups),
            _skipped(file),
            human_bytes(file.bytes_read),
        )
        for file in shown
    ]
    print_table(headers, rows)
    if len(shown) < len(report.files):
        click.echo(f"and {len(report.files) - len(shown)} more files: -v names them all")
    if verbose:
        for file in report.files:
            _print_row_groups(file)


def _skipped(file: FileReport) -> str:
    counts = Counter(g.skipped_by for g in file.row_groups if g.skipped_by is not None)
    return ", ".join(f"{step} {count}" for step, count in counts.items())


def _print_row_groups(file: FileReport) -> None:
    from secure_bloom.cli.tables import print_table

    rows = []
    for group in file.row_groups:
        skipped = "read" if group.skipped_by is None else f"skipped by {group.skipped_by}"
        why = "; ".join(
            f"{note.column}, {note.step}: {note.text}" if note.step else note.text
            for note in group.notes
        )
        rows.append((group.row_group, f"{group.rows:,}", skipped, why))
    print_table(("row group>", "rows>", "", "why"), rows, title=file.path)
