"""Print the report of ``secure-bloom advise``: text or JSON."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from secure_bloom.cli.print_audit import write_text
from secure_bloom.reports.text import counted, human_bytes, legible, without_commands

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from secure_bloom.advising import ColumnAdvice, TableAdvice
    from secure_bloom.advising.trial import LookupComparison

_FILE_WIDTH, _LONGEST_NAME, _LONGEST = 110, 30, 400
#: A narrower terminal gets paragraphs, no table.
_TABLE_WIDTH = 90
_STYLES = {"gains": "bold green", "no": "dim"}


def write_advice(form: str, advice: TableAdvice, output: Path | None) -> None:
    """Write the advice in this form to a file, or to stdout."""
    write_text(FORMS[form](advice, output is None and sys.stdout.isatty()), output)


def _text(advice: TableAdvice, on_terminal: bool) -> str:
    from rich.console import Console

    content = io.StringIO()
    width = None if on_terminal else _FILE_WIDTH
    console = Console(file=content, width=width, force_terminal=on_terminal, highlight=False)
    for line in _head(advice):
        console.print(line, markup=False)
    if console.width >= _TABLE_WIDTH and any(column.trial for column in advice.columns):
        console.print(_table(advice))
        _print_reasons(advice, console)
    else:
        _print_paragraphs(advice, console)
    for line in _ending(advice):
        console.print(line, markup=False, soft_wrap=True)
    # Without the spaces that fill the rows of a table.
    return "\n".join(line.rstrip() for line in content.getvalue().rstrip().splitlines())


def _head(advice: TableAdvice) -> Iterator[str]:
    yield f"table: {advice.size_text}"
    yield f"sure:  {advice.sureness}"
    if advice.queries_text:
        yield advice.queries_text


def _table(advice: TableAdvice) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("column", "verdict", "absent value", "present value", "adds", "paid back"):
        table.add_column(name, no_wrap=name != "paid back")
    for column in advice.columns:
        style = _STYLES[column.verdict]
        table.add_row(
            Text(legible(column.column, _LONGEST_NAME)),
            Text(str(column.verdict), style=style),
            _lookup(column.kinds["absent"]),
            _lookup(column.kinds["present"]),
            "" if column.trial is None else human_bytes(round(column.trial.bytes_added)),
            _pays(column),
        )
    return table


def _lookup(kind: LookupComparison | None) -> str:
    """Return the bytes of a lookup without the filter and with it."""
    if kind is None:
        return ""
    sizes = (human_bytes(round(cost.bytes)) for cost in (kind.without, kind.with_))
    return " → ".join(size or "" for size in sizes)


def _pays(column: ColumnAdvice) -> str:
    pays = column.lookups_until_it_pays
    return "" if pays is None or not column.gains else counted(pays, "lookup")


def _print_reasons(advice: TableAdvice, console: Console) -> None:
    for column in advice.columns:
        name = legible(column.column, _LONGEST_NAME)
        console.print(f"{name}: {_reason(column)}", markup=False)


def _print_paragraphs(advice: TableAdvice, console: Console) -> None:
    from rich.text import Text

    for column in advice.columns:
        name = legible(column.column, _LONGEST)
        style = _STYLES[column.verdict]
        console.print(Text.assemble("\n", name, ": ", (str(column.verdict), style)))
        console.print(f"  {_reason(column)}", markup=False)
        for kind in ("absent", "present"):
            if column.kinds[kind] is not None:
                console.print(f"  {kind} value: {_lookup(column.kinds[kind])}", markup=False)
        for fact in column.facts:
            console.print(f"  {fact}", markup=False)


def _reason(column: ColumnAdvice) -> str:
    share = "" if column.share is None else f" ({100 * column.share:.0f} % of the log's lookups)"
    better = "" if column.better_fpp is None else f"; fpp = {column.better_fpp:g} reads less still"
    return legible(column.reason, _LONGEST) + better + share


def _ending(advice: TableAdvice) -> Iterator[str]:
    yield ""
    if not advice.policy:
        yield "no column gains by a filter: there is nothing to add"
        return
    yield "lines for a policy:"
    yield ""
    yield advice.policy


def _json(advice: TableAdvice, _on_terminal: bool) -> str:
    return without_commands(advice.to_json())


_Form = Callable[["TableAdvice", bool], str]
FORMS: dict[str, _Form] = {"text": _text, "json": _json}
