"""Tables, sizes and names for a terminal; programs take ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click

from secure_bloom.cli.loudness import wanted_color
from secure_bloom.reports import SCHEMA_VERSION
from secure_bloom.text import written_out

_WIDE = 240

_NAME_LENGTH = 26


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout."""
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2))


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Rows under headers; headers that end in ``>`` head columns of numbers.  Cells never wrap."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # In a file or a pipe a path must not be cut to fit 80 columns.
    color = wanted_color()
    console = Console(
        width=None if sys.stdout.isatty() else _WIDE,
        highlight=False,
        force_terminal=color or None,
        no_color=color is False or None,
    )
    table = Table(
        title=title and escape(written_out(title)),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for header in headers:
        justify: Literal["left", "right"] = "right" if header.endswith(">") else "left"
        table.add_column(
            escape(written_out(header.removesuffix(">"))), justify=justify, no_wrap=True
        )
    for row in rows:
        table.add_row(*("" if cell is None else escape(written_out(str(cell))) for cell in row))
    console.print(table)


def short_names(paths: Sequence[str]) -> dict[str, str]:
    """Short names for a terminal: without a folder that all share, the middle left out."""
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


def percent(share: float | None) -> str | None:
    """A share as a person reads it."""
    return None if share is None else f"{100 * share:.3g} %"


def visible(text: str | None) -> str | None:
    """A text from a file, safe for a terminal: anybody may have written it."""
    return text and "".join(c if c.isprintable() else "\ufffd" for c in text)
