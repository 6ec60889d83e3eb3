"""Print tables, sizes and names on a terminal. Programs use ``--json``."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from textwrap import wrap
from typing import Any, Final, Protocol

import click

from secure_bloom.cli.verbosity import is_quiet, print_line, wanted_color, wants_summary
from secure_bloom.reports.base import SCHEMA_VERSION
from secure_bloom.reports.text import counted, without_commands, written_out

#: Columns of a line in a pipe or file: what windows and logs show without breaking it.
_PIPE_WIDTH: Final = 100
#: Names of files are never cut to fewer characters.
_NAME_LENGTH = 26
#: Columns of a terminal for what is beside the names.
_BESIDE_NAMES = 54
#: Files that are named one by one without -v.
SHOWN_FILES: Final = 20


def print_json(document: dict[str, Any]) -> None:
    """Print one document on stdout."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2)
    click.echo(without_commands(text))


def print_table(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
) -> None:
    """Print rows under headers, but not with ``-q``. Headers of numbers end in ``>``.

    Cells never wrap.  If the terminal is too narrow, each row is printed as a paragraph, and so it
    is in a pipe or file if the table has more than 100 columns of text.
    """
    if not is_quiet():
        right = [header.endswith(">") for header in headers]
        print_data([header.removesuffix(">") for header in headers], rows, right, title=title)


def print_data(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[bool],
    *,
    title: str | None = None,
) -> None:
    """Print rows of a file, as :func:`print_table` does. ``right`` says which columns hold numbers.

    Names of columns may end in ``>`` here.
    """
    heads = [written_out(header) for header in headers]
    cells = [["" if cell is None else written_out(str(cell)) for cell in row] for row in rows]
    shown_title = title and written_out(title)
    color = wanted_color()
    if is_too_wide(headers, cells):
        _print_row_by_row(heads, cells, shown_title)
    elif sys.stdout.isatty() or color:
        _draw(heads, right, cells, shown_title, color=color)
    else:
        click.echo("\n".join(_plain_lines(heads, right, cells, shown_title)))


def is_too_wide(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> bool:
    """Return whether the table, with its edges and gaps, is too wide for where it is printed."""
    columns = zip([header.removesuffix(">") for header in headers], *rows, strict=True)
    width = 1 + sum(2 + max(_columns(str(cell)) for cell in column) for column in columns)
    return width > terminal_width()


def terminal_width() -> int:
    """Return the width of the terminal in columns. A pipe has 100, or what COLUMNS says."""
    # Imported here: it brings the decompressors along.
    from shutil import get_terminal_size

    fallback = (80 if sys.stdout.isatty() else _PIPE_WIDTH, 24)
    return get_terminal_size(fallback).columns


def _print_row_by_row(
    heads: Sequence[str], rows: Iterable[Sequence[str]], title: str | None
) -> None:
    """Print the first cell of each row, and below it the other cells with their headers."""
    if title:
        click.echo(title)
    width = terminal_width()
    for first, *cells in rows:
        click.echo(first)
        said = [f"{head} {cell}" for head, cell in zip(heads[1:], cells, strict=True) if cell]
        # A long name goes beyond the width: in two parts it could not be copied.
        wrapped = wrap(
            ", ".join(said),
            width,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        click.echo("\n".join(wrapped))


class WrittenFile(Protocol):
    """The report of a file that a run may have written anew under another path."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def new_path(self) -> str | None: ...  # noqa: D102


def shown_paths(files: Iterable[WrittenFile]) -> dict[str, str]:
    """Return, for the path of each file, the path to show: the new file's if there is one."""
    return {file.path: file.new_path or file.path for file in files}


def print_files(headers: Sequence[str], rows: Sequence[Sequence[object]], *, verbose: bool) -> None:
    """Print a table with a row for each file. Of many files only the first are shown.

    ``verbose`` shows all. With ``--summary``, or without files, nothing is printed.
    """
    if wants_summary() or not rows:
        return
    shown = rows if verbose else rows[:SHOWN_FILES]
    print_table(headers, shown)
    if len(shown) < len(rows):
        print_line(f"and {counted(len(rows) - len(shown), 'more file')}: -v names them all")


def _draw(
    heads: Sequence[str],
    right: Sequence[bool],
    rows: Iterable[Sequence[str]],
    title: str | None,
    *,
    color: bool | None,
) -> None:
    """Draw a table on a terminal, in its colors, cut to its width."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(
        width=terminal_width(),
        highlight=False,
        force_terminal=color or None,
        no_color=color is False or None,
    )
    # A line of its own: as the title of the table it would be wrapped to the table's width.
    if title:
        console.print(escape(title), style="bold", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head, is_right in zip(heads, right, strict=True):
        table.add_column(escape(head), justify="right" if is_right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _plain_lines(
    heads: Sequence[str], right: Sequence[bool], rows: Sequence[Sequence[str]], title: str | None
) -> Iterator[str]:
    """Yield the table as lines for a file or a pipe, where no path may be cut.

    There may be thousands of rows, and drawing them as for a terminal takes longer than the work on
    small files.
    """
    widths = [max(map(_columns, column)) for column in zip(heads, *rows, strict=True)]
    if title:
        yield title
    yield ""
    yield _plain_line(heads, widths, right)
    # Other encodings, such as Latin-1, have no lines, and a stream of text may have no encoding.
    line = "─" if (sys.stdout.encoding or "").lower().startswith("utf") else "-"
    yield f" {line * (sum(widths) + 2 * len(widths) - 1)} "
    for row in rows:
        yield _plain_line(row, widths, right)
    yield ""


def _plain_line(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for cell, width, is_right in zip(row, widths, right, strict=True):
        space = " " * (width - _columns(cell))
        cells.append(f"{space}{cell}" if is_right else f"{cell}{space}")
    return f" {'  '.join(cells)}  "


def _columns(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return len(text) if text.isascii() else len(text) + sum(map(_extra_column, text))


def _extra_column(char: str) -> int:
    if unicodedata.combining(char):
        return -1
    return 1 if unicodedata.east_asian_width(char) in "FW" else 0


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return short names for a terminal: without the folder that all share, and cut in the middle.

    Names stay whole if cutting would make them equal.
    """
    if not sys.stdout.isatty():
        return {path: path for path in paths}
    common = common_folder(paths)
    longest = max(_NAME_LENGTH, terminal_width() - _BESIDE_NAMES)
    cut = {path: _shortened(path.removeprefix(common), longest) for path in paths}
    uses = Counter(cut.values())
    return {
        path: name if uses[name] == 1 else path.removeprefix(common) for path, name in cut.items()
    }


def common_folder(paths: Sequence[str]) -> str:
    """Return the folder that all paths share, with a slash at its end, or an empty text."""
    levels = zip(*(path.split("/")[:-1] for path in paths), strict=False)
    common = "".join(f"{names[0]}/" for names in takewhile(lambda it: len(set(it)) == 1, levels))
    return "" if common == "/" or common.endswith("://") else common


def _shortened(name: str, longest: int) -> str:
    """Return the name, shortened in the middle if it is long."""
    if len(name) <= longest:
        return name
    tail = longest // 3
    return f"{name[: longest - tail - 1]}…{name[-tail:]}"


def percent(share: float | None) -> str | None:
    """Return a share in percent, rounded for a person."""
    return None if share is None else f"{100 * share:.3g} %"
