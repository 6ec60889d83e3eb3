"""Print an AuditReport on a terminal: a paragraph for each mistake, then the conclusion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.auditing.findings import KINDS, AuditReport
from secure_bloom.auditing.formats.mistakes import (
    HARMLESS,
    Mistake,
    State,
    below_folder,
    common_folder,
    extent,
    group_report,
    parts_of_fix,
    tallies,
    verdict,
)
from secure_bloom.auditing.scope import AuditScope
from secure_bloom.reports.text import counted, legible, named_columns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_EXAMPLES = 3
_MOST_TABLES = 20
_LONGEST = 2000
_STYLES = {
    State.CRITICAL: "bold white on red",
    State.HIGH: "bold black on dark_orange",
    State.MEDIUM: "bold black on yellow",
    State.LOW: "bold white on blue",
    State.UNCHECKED: "bold white on magenta",
    State.NOTE: "dim",
    State.IGNORED: "dim",
    State.CLEAN: "bold green",
}


class _Line(NamedTuple):
    """One line with its indentation. A command is not folded, so that it can be copied."""

    indent: int
    text: Text
    is_command: bool = False


def render_text(report: AuditReport, console: Console, *, verbose: bool = False) -> None:
    """Print the report, no wider than the console. Nothing from a file acts on the terminal.

    With ``verbose`` all files and tables, and the errors that led to a mistake, are shown too.
    """
    groups = group_report(report)
    folder = common_folder(report.paths)
    for line in _report_lines(report, groups, folder, verbose=verbose):
        _print(console, line)


def _print(console: Console, line: _Line) -> None:
    from rich.text import Text

    indent, text, is_command = line
    if is_command:
        command = Text(" " * indent).append_text(text)
        console.print(command, highlight=False, no_wrap=True, soft_wrap=True)
        return
    # Folded, not cropped: a long path continues in the next line.
    for part in text.wrap(console, console.width - indent, overflow="fold") or [Text()]:
        part.rstrip()
        console.print(Text(" " * indent).append_text(part), highlight=False, no_wrap=True)


def _report_lines(
    report: AuditReport, groups: tuple[Mistake, ...], folder: str, *, verbose: bool
) -> Iterator[_Line]:
    for group in groups:
        if group.state not in HARMLESS:
            yield from _paragraph(group, folder, verbose=verbose)
    yield from _lines_of([group for group in groups if group.state in HARMLESS], report.scope)
    yield from _tables(report, folder, most=None if verbose else _MOST_TABLES)
    yield from _summary(report, groups, folder)


def _paragraph(group: Mistake, folder: str, *, verbose: bool) -> Iterator[_Line]:
    """Yield the mistake, its places and the fix, each line with its indentation."""
    from rich.text import Text

    state = (f" {group.state} ", _STYLES[group.state])
    yield _Line(0, Text.assemble(state, (f" {group.id}  ", "bold"), named_columns(group.columns)))
    yield _Line(2, Text(legible(group.what, _LONGEST)))
    yield _Line(2, Text(extent(group), style="dim"))
    shown = group.paths if verbose else group.paths[:_EXAMPLES]
    for path in shown:
        yield _Line(4, Text(legible(below_folder(path, folder))))
    if len(group.paths) > len(shown):
        yield _Line(4, Text(f"and {len(group.paths) - len(shown):,} more", style="dim"))
    for cause in group.findings[0].causes if verbose else ():
        yield _Line(2, Text(f"cause: {legible(cause, _LONGEST)}", style="dim"))
    yield from _fix_lines(group.fix)
    yield _Line(0, Text())


def _fix_lines(fix: str) -> Iterator[_Line]:
    """Yield the fix, with each command on a line of its own."""
    from rich.text import Text

    label = "fix: "
    for part, is_command in parts_of_fix(fix):
        if is_command and label:
            yield _Line(2, Text(label.rstrip(), style="green"))
        if is_command:
            yield _Line(4, Text(legible(part, _LONGEST), style="bold"), is_command=True)
        else:
            text = legible(part.strip(" ,;"), _LONGEST)
            yield _Line(2, Text.assemble((label, "green"), text))
        label = ""


def _lines_of(groups: list[Mistake], scope: AuditScope) -> Iterator[_Line]:
    """Yield one line for each note and each ignored mistake."""
    from rich.text import Text

    for group in groups:
        columns = f" {named_columns(group.columns)}" if group.columns else ""
        text = f"{group.state}: {group.id}{columns}: {legible(group.what)} ({extent(group)})"
        if group.state is State.IGNORED and (why := scope.reason(group.id, group.columns)):
            text += f"; accepted: {legible(why)}"
        yield _Line(0, Text(text, style=_STYLES[group.state]))
    if groups:
        yield _Line(0, Text())


def _tables(report: AuditReport, folder: str, most: int | None) -> Iterator[_Line]:
    """Yield a line for each table with the number of its findings. One table needs no line."""
    from rich.text import Text

    tables = report.tables
    if len(tables) < 2:
        return
    yield _Line(0, Text("findings by table, each file counted:", style="dim"))
    for it in tables[:most]:
        counts = [f"{it.findings[kind]:,} {kind}" for kind in KINDS if it.findings.get(kind)]
        name = legible(below_folder(it.table, folder))
        text = f"{name} ({counted(it.files, 'file')}): {', '.join(counts) or 'clean'}"
        yield _Line(0, Text(text, style="" if counts else _STYLES[State.CLEAN]))
    if tables[:most] != tables:
        rest = counted(len(tables) - _MOST_TABLES, "table")
        yield _Line(0, Text(f"and {rest} with the fewest findings", style="dim"))
    yield _Line(0, Text())


def _summary(report: AuditReport, groups: tuple[Mistake, ...], folder: str) -> Iterator[_Line]:
    from rich.text import Text

    result = verdict(report, groups)
    counts = [
        counted(tally.mistakes, "note")
        if tally.state is State.NOTE
        else f"{tally.mistakes:,} {tally.state}"
        for tally in tallies(groups)
        if tally.mistakes
    ]
    if folder:
        yield _Line(0, Text(f"paths are below {legible(folder)}", style="dim"))
    yield _Line(0, Text(result.scope, style="dim"))
    headline = (result.headline, _STYLES[result.state])
    yield _Line(0, Text.assemble(headline, f": {', '.join(counts)}" if counts else ""))
