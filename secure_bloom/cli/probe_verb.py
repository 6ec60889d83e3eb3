"""``secure-bloom probe``: whether values may be in files, by the filters of a column."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from secure_bloom.bloom.verdicts import ProbeReport, Verdict
from secure_bloom.cli.exit_codes import print_and_exit_code, verdict_code
from secure_bloom.cli.inputs import listed_values
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    with_access_to_read,
    with_common_options,
    with_table_version,
)
from secure_bloom.cli.terminal_tables import print_table, short_names
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import print_line, print_note
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted


@click.command("probe")
@click.argument("path")
@click.argument("column")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option(
    "--from",
    "source",
    metavar="FILE[:COLUMN]",
    help="Values from a file, one a line, or from a column of a CSV or TSV file; - for stdin.",
)
@with_access_to_read
@with_timeout
@with_table_version
@with_common_options
def probe_command(
    path: str,
    column: str,
    values: tuple[str, ...],
    source: str | None,
    access: AccessOptions,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask the filters of COLUMN whether VALUE may be in PATH, per file and row group.

    Values are written as a person would: text, 12.50, 2024-03-01, 2024-03-01T10:00:00Z, a UUID,
    hex:00ff for bytes.

    Arguments are in the history of the shell and in the list of processes: give values that are
    secret by --from.

    \b
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json
    secure-bloom probe out/ email --from wanted.txt

    Exit code: 0 a value may be there, 1 absent everywhere, 3 some file has no filter, 2 error.
    """
    from secure_bloom.api.probe import probe

    report = probe(path, column, _values(values, source), **access.arguments(), **at)
    code = print_and_exit_code(report, print_probe_report, as_json=as_json, verbose=verbose)
    return code or verdict_code(report.verdicts)


def _values(given: tuple[str, ...], source: str | None) -> list[str]:
    values = [*given, *(listed_values(source) if source is not None else ())]
    if not values:
        raise PolicyError("no value is given", hint="write probe PATH COLUMN VALUE, or --from FILE")
    return values


#: The order in which values are printed.
_SHOWN_FIRST = (Verdict.MAYBE, Verdict.NO_FILTER, Verdict.ABSENT)
#: Row groups that are named of a single value without -v.
_SHOWN_PLACES = 5


def print_probe_report(report: ProbeReport, *, verbose: bool) -> None:
    """Print a line for each value, possible values first, then the places where they may be.

    If there are several values, the places are printed only with ``verbose``.
    """
    counts: dict[object, Counter[Verdict]] = {value: Counter() for value in report.values}
    places: dict[object, list[str]] = {}
    names = short_names([file.path for file in report.files])
    for file in report.files:
        for group in file.row_groups:
            for value, verdict in group.verdicts.items():
                counts[value][verdict] += 1
                if verdict is Verdict.MAYBE:
                    place = f"{names[file.path]}, row group {group.row_group}"
                    places.setdefault(value, []).append(place)
    headers = ("value", "answer", *(f"{_word(verdict)}>" for verdict in _SHOWN_FIRST))
    answers = _answers(report)
    ordered = sorted(report.values.items(), key=lambda it: _SHOWN_FIRST.index(it[1]))
    rows = [
        (value, answers[verdict], *(counts[value][each] for each in _SHOWN_FIRST))
        for value, verdict in ordered
    ]
    files = counted(len(report.files), "file")
    title = f"row groups of {files}, by what the filter of {report.column} says"
    # If every file failed there is nothing to count: the errors say why.
    if rows:
        print_table(headers, rows, title=title)
    elif report.failed:
        print_line(f"unknown: no filter of {report.column} could be asked in {files}")
    for note in sorted({file.note for file in report.files if file.note}):
        print_note(note)
    if places and len(rows) > 1 and not verbose:
        print_line("-v names the row groups that may have a value")
        return
    for value, found in places.items():
        _print_places(str(value), found, limit=None if verbose else _SHOWN_PLACES)


def _answers(report: ProbeReport) -> dict[Verdict, str]:
    """Return the word for each verdict.

    A file that failed, such as one whose key is missing, may have a value that no other file has.
    """
    words = {verdict: _word(verdict) for verdict in Verdict}
    if report.failed:
        words[Verdict.ABSENT] = f"unknown: {counted(len(report.failed), 'file')} failed"
    return words


def _word(verdict: Verdict) -> str:
    return verdict.replace("_", " ")


def _print_places(value: str, found: list[str], *, limit: int | None) -> None:
    print_line(f"{value} may be in")
    for place in found[:limit]:
        print_line(f"  {place}")
    if limit is not None and len(found) > limit:
        print_line(f"  and {len(found) - limit} more row groups: -v names them all")
