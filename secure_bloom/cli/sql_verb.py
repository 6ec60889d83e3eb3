"""``secure-bloom sql``: a SQL query over tables, encrypted or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
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
    TablesAccess,
    print_hidden,
    with_access_to_tables,
    with_missing_keys,
    with_table_version,
)
from secure_bloom.cli.terminal_tables import print_json
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import print_note
from secure_bloom.errors import PolicyError
from secure_bloom.reading.rows.python_texts import json_of

if TYPE_CHECKING:
    from secure_bloom.reading import Table


@click.command("sql")
@click.argument("query", required=False)
@click.option("--query-from", metavar="FILE", help="The query from a file; - is stdin.")
@click.option(
    "--parameters",
    metavar="FILE",
    help='Values of $name in the query: {"name": value} in JSON; - is stdin.',
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=PATH",
    help="A name for a table in the query; may be given several times.",
)
@with_row_options
@with_missing_keys
@with_timeout
@with_table_version
@with_access_to_tables
def sql_command(
    query: str | None,
    query_from: str | None,
    parameters: str | None,
    tables: tuple[str, ...],
    form: str | None,
    output: str | None,
    for_spreadsheets: bool,
    access: TablesAccess,
    missing_keys: str,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,  # noqa: ARG001 - every verb has it
) -> int:
    """Run QUERY, one SELECT statement in DuckDB's dialect, over encrypted or plain tables.

    A table in the query is its path in single quotes, or a name given by --table.  Columns and
    comparisons are pushed down: what filters and statistics rule out is not read.  Put secret
    values into a file: arguments can be seen by others.  --version, --snapshot and --timestamp are
    for a query of one table.  Needs the extra sql.

    \b
    secure-bloom sql "select country, count(*) from 'out/' group by 1"
    secure-bloom sql "select * from 'out/' where email = $email" --parameters wanted.json
    secure-bloom sql "select id, amount from c join o using (id)" \\
        --table c=lake/customers --table o=lake/orders -o found.parquet \\
        --policy c=customers.toml --policy o=orders.toml

    Exit code: 0 done, 2 error.
    """
    from secure_bloom.api.sql import SqlRequest, answered
    from secure_bloom.reading.rows.export import with_unique_names

    file = output_file(output, stdout_is_free=not as_json)
    form = None if as_json and file is None else format_of(form, file)
    request = SqlRequest(
        _query(query, query_from, parameters),
        _by_name(tables),
        parameters=None if parameters is None else _values(parameters),
        missing_keys=missing_keys,
        **at,
        **access.arguments(),
    )

    def refuse(table: Table) -> None:
        if file is not None and form is not None:
            note = table.refuse_output(file, form)
            if note is not None:
                print_note(note, err=True)

    with answered(request, refuse) as (rows, hidden):
        print_hidden(hidden, missing_keys)
        if form not in ("table", "csv", "tsv"):
            rows = with_unique_names(rows)
        if form is None:
            found = [json_of(row) for batch in rows for row in rows_of(batch)]
            document: dict[str, Any] = {"rows": len(found), "data": found}
        else:
            # A table shows that there are more rows, and reads no further.
            batches = _first(rows, TABLE_ROWS + 1) if form == "table" else rows
            count = write_rows(form, rows.schema, batches, file, for_spreadsheets=for_spreadsheets)
            document = {"rows": count, "output": output}
    if as_json:
        print_json(document)
    elif file is not None:
        print_written(document["rows"], file)
    return 0


def _query(text: str | None, source: str | None, parameters: str | None) -> str:
    if (text is None) == (source is None):
        raise PolicyError(
            "the query is given once, as an argument or by --query-from",
            hint="secure-bloom sql \"select count(*) from 'out/'\"",
        )
    if {source, parameters} == {"-"}:
        raise PolicyError("the query and its parameters cannot both come from stdin")
    return read_text(source) if text is None and source is not None else text or ""


def _by_name(texts: Iterable[str]) -> dict[str, str]:
    """Return the path of each name that --table gives."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise PolicyError(f"--table {text} is not NAME=PATH", hint="--table c=lake/customers")
        if found.setdefault(name, path) != path:
            raise PolicyError(
                f"--table names two tables {name}", hint="give each table a name of its own"
            )
    return found


def _values(source: str) -> dict[str, object]:
    """Return the parameters of a query. Numbers are exact, also those in lists and objects."""
    return {name: _with_numbers(value) for name, value in read_parameters(source).items()}


def _with_numbers(value: object) -> object:
    from secure_bloom.predicates.tree import Numeral

    if isinstance(value, Numeral):
        # DuckDB compares a column of whole numbers with a whole number without a cast.
        return int(value) if value.lstrip("-").isdecimal() else Decimal(value)
    if isinstance(value, list):
        return [_with_numbers(it) for it in value]
    if isinstance(value, dict):
        return {name: _with_numbers(it) for name, it in value.items()}
    return value


def _first(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield batches until there are ``rows`` rows."""
    for batch in batches:
        yield batch.slice(0, rows)
        rows -= batch.num_rows
        if rows <= 0:
            return
