"""Print the report of ``secure-bloom read --explain``: bytes and row groups, skipped and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.terminal_tables import is_too_wide, print_table, short_names
from secure_bloom.cli.verbosity import tell, tell_note
from secure_bloom.reports.text import counted, human_bytes, legible

if TYPE_CHECKING:
    from secure_bloom.reading import FileReadReport, ReadReport
    from secure_bloom.reading.pruning.plan import Note, RowGroupPlan, Step

#: The most files that are listed without -v.
_SHOWN_FILES = 20


def print_report(report: ReadReport, *, verbose: bool) -> None:
    """Print what was skipped, why it was not more, and advice; then the files."""
    rows = "none read: this is the plan" if report.rows is None else f"{report.rows:,}"
    tell(f"rows:       {rows}")
    tell(f"row groups: {report.row_groups_read:,} of {report.row_groups:,} read")
    for step, count in report.skipped.items():
        tell(f"            {count:,} skipped by {step}")
    if report.files_left:
        left = counted(report.files_left, "file")
        tell(f"            {left} not looked at: there were rows enough")
    _print_bytes(report)
    steps = ", ".join(f"{step} {spent:.2f}" for step, spent in report.seconds.items())
    tell(f"seconds:    {steps}")
    for line in _reasons(report):
        tell(f"not skipped: {legible(line)}")
    for line in report.advice:
        tell(f"advice: {legible(line)}")
    for note, count in Counter(note for file in report.files for note in file.notes).items():
        tell_note(f"{note} ({counted(count, 'file')})")
    _print_files(report, verbose=verbose)


def _print_bytes(report: ReadReport) -> None:
    read, full = human_bytes(report.bytes_read), human_bytes(report.bytes_full_scan)
    share = 100 * report.bytes_read / max(1, report.bytes_full_scan)
    if report.bytes_read <= report.bytes_full_scan:
        tell(f"bytes:      {read} of {full} that a full scan reads ({share:.1f} %)")
    else:
        tell(
            f"bytes:      {read}, {share - 100:.1f} % more than a full scan ({full}): filters and "
            "indexes took more than was skipped"
        )
    parts = {
        "footers": sum(file.bytes_footer for file in report.files),
        "filters, dictionaries and indexes": sum(file.bytes_judged_by for file in report.files),
        "pages": sum(file.bytes_pages for file in report.files),
    }
    told = ", ".join(f"{name} {human_bytes(size)}" for name, size in parts.items() if size)
    tell(f"            {told or 'none'}")


def _reasons(report: ReadReport) -> list[str]:
    """Return why row groups were read, by column and step, with their numbers."""
    found: dict[tuple[str, Step | None, str], list[tuple[RowGroupPlan, list[Note]]]] = {}
    for file in report.files:
        for group in file.row_groups:
            if group.skipped_by is None:
                for kind, notes in _by_kind(group.notes).items():
                    found.setdefault(kind, []).append((group, notes))
    return [
        f"{column}, {'' if step is None else f'{step}: '}{_together(places)} "
        f"({counted(len(places), 'row group')})"
        for (column, step, _), places in found.items()
    ]


def _by_kind(notes: Sequence[Note]) -> dict[tuple[str, Step | None, str], list[Note]]:
    """Return notes grouped by column, step and kind: the reason, or the text of the note."""
    found: dict[tuple[str, Step | None, str], list[Note]] = {}
    for note in notes:
        kind = note.reason or ("rows" if note.rows is not None else note.text)
        found.setdefault((note.column, note.step, kind), []).append(note)
    return found


def _together(places: Sequence[tuple[RowGroupPlan, list[Note]]]) -> str:
    """Return notes of one kind as one text, with the sum or the range of their numbers."""
    from secure_bloom.reading.pruning.plan import percent

    first = places[0][1][0]
    if first.rows is not None:
        left = sum(min(note.rows or 0 for note in notes) for _, notes in places)
        return f"leaves {left:,} of {sum(group.rows for group, _ in places):,} rows"
    chances = sorted({n.chance for _, notes in places for n in notes if n.chance is not None})
    if len(chances) > 1:
        return (
            "maybe: the filters' false-positive probabilities are "
            f"{percent(chances[0])} to {percent(chances[-1])} %"
        )
    return first.text


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
        _print_file_by_file(rows)
    else:
        print_table(headers, rows)
    if len(shown) < len(report.files):
        more = counted(len(report.files) - len(shown), "more file")
        tell(f"and {more}: -v names them all")
    if verbose:
        for file in report.files:
            _print_row_groups(file)


def _print_file_by_file(rows: Sequence[Sequence[object]]) -> None:
    """Print the rows of the table as lines: the terminal is too narrow for it."""
    for name, row_groups, read, skipped, size in rows:
        tell(str(name))
        tell(f"  {read} of {row_groups} read, {size}")
        if skipped:
            tell(f"  skipped by {skipped}")


def _skipped(file: FileReadReport) -> str:
    counts = Counter(g.skipped_by for g in file.row_groups if g.skipped_by is not None)
    return ", ".join(f"{step} {count}" for step, count in counts.items())


def _print_row_groups(file: FileReadReport) -> None:
    click.echo(legible(file.path))
    for group in file.row_groups:
        became = "read" if group.skipped_by is None else f"skipped by {group.skipped_by}"
        tell(f"  row group {group.row_group}, {counted(group.rows, 'row')}: {became}")
        for note in group.notes:
            step = "" if note.step is None else f"{note.step}: "
            tell(f"    {legible(note.column)}, {step}{note.text}")
