"""``secure-bloom advise``: which columns gain from a filter, before anything is written."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.cli.audit_verb import write_text
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.shared_arguments import (
    AccessOptions,
    form_of,
    with_access_to_sign,
    with_common_options,
    with_form_options,
)
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.reports.text import counted, human_bytes, legible, without_commands

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice
    from secure_bloom.advising.trial import LookupComparison


_FILE_WIDTH, _LONGEST_NAME, _LONGEST = 100, 30, 400
_STYLES = {"gains": "bold green", "no": "dim"}


def write_advice(form: str, advice: TableAdvice, output: Path | None) -> None:
    """Write the advice in this form to a file, or to stdout."""
    write_text(
        FORMS[form](advice, output is None and sys.stdout.isatty()),
        output,
        for_people=form == "text",
    )


def _text(advice: TableAdvice, on_terminal: bool) -> str:
    from rich.console import Console

    content = io.StringIO()
    width = None if on_terminal else _FILE_WIDTH
    console = Console(file=content, width=width, force_terminal=on_terminal, highlight=False)
    for line in _head(advice):
        console.print(line, markup=False)
    table = _table(advice)
    # Not narrower than it needs: the console would cut what people compare.
    needed = console.options.update(width=10 * _FILE_WIDTH)
    fits = console.measure(table, options=needed).maximum <= console.width
    if fits and any(column.trial for column in advice.columns):
        console.print(table)
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
    if advice.in_clear:
        yield "note:  the files are in clear: the advice is for the table after reencrypt"
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
    """Return the bytes that a lookup reads without the filter and with it."""
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
    better = ""
    if column.better is not None:
        where = "" if column.better.reads_less else " in an open table"
        better = f"; fpp = {column.better.fpp:g} reads less still{where}"
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


_PATH = click.Path(path_type=Path)


@click.command("advise")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-c",
    "--column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="A column to look at, instead of all; may be repeated.",
)
@click.option(
    "--queries",
    type=_PATH,
    metavar="FILE",
    help="A log of queries, one SQL condition or statement a line: columns are ranked by it.",
)
@click.option(
    "--fpp",
    type=float,
    metavar="F",
    help="False positives of the filters; else the policy's, or 0.01.",
)
@with_form_options(FORMS, "advice")
@with_timeout
@with_access_to_sign
@with_common_options
def advise_command(
    paths: tuple[str, ...],
    columns: tuple[str, ...],
    form: str,
    output: Path | None,
    access: AccessOptions,
    as_json: bool,
    verbose: bool,  # noqa: ARG001 - the advice is whole without it
    **options: Any,
) -> int:
    """Say which columns of PATH gain by a Bloom filter, what it costs, and why others do not.

    Nothing is written to the table.  Filters for a part of it are built in memory.  Values that
    rows have, and values that no row has, are looked up without and with these filters.  The output
    ends with lines for a policy.  A value of a query is never shown or kept.

    \b
    secure-bloom advise out/
    secure-bloom advise out/ --policy keys/policy.toml --queries queries.sql
    secure-bloom advise out/ --json

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.advise import advise
    from secure_bloom.lakes.output_rules import require_report_file

    form = form_of(form, as_json=as_json)
    require_report_file(output, access.policy_path, access.keyring)
    with progress_bar("trying filters", quiet=as_json) as progress:
        wanted = {**options, "columns": columns or None, "progress": progress}
        advice = advise(paths, **access.arguments(), **wanted)
    write_advice(form, advice, output)
    return 0
