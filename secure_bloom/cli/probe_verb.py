"""``secure-bloom probe``: whether values may be in files, by the filters of a column."""

from __future__ import annotations

from typing import Any

import click

from secure_bloom.cli.arguments import (
    Access,
    with_access_to_read,
    with_common_options,
    with_table_version,
)
from secure_bloom.cli.exit_codes import finish, verdict_code
from secure_bloom.cli.inputs import read_lines
from secure_bloom.errors import PolicyError


@click.command("probe", short_help="Ask filters whether values may be there.")
@click.argument("path")
@click.argument("column")
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option(
    "--from", "source", metavar="FILE", help="Values from a file, one a line; - for stdin."
)
@with_access_to_read
@with_table_version
@with_common_options
def probe_command(
    path: str,
    column: str,
    values: tuple[str, ...],
    source: str | None,
    access: Access,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask the filters of COLUMN whether VALUE may be in PATH, per file and row group.

    Values are written as a person would: text, 12.50, 2024-03-01, 2024-03-01T10:00:00Z, a UUID,
    hex:00ff for bytes.

    Arguments stand in the history of the shell and in the list of processes: give values that are
    secret by --from.

    \b
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json
    secure-bloom probe out/ email --from wanted.txt

    Exit code: 0 a value may be there, 1 absent everywhere, 3 some file has no filter, 2 error.
    """
    from secure_bloom.bloom.probe import probe
    from secure_bloom.cli.print_probe import print_probe_report

    report = probe(
        path,
        column,
        _values(values, source),
        **access.arguments(),
        **at,
    )
    code = finish(report, print_probe_report, as_json=as_json, verbose=verbose)
    return code or verdict_code(report.verdicts)


def _values(given: tuple[str, ...], source: str | None) -> list[str]:
    values = [*given, *(read_lines(source) if source is not None else ())]
    if not values:
        raise PolicyError("no value is given", hint="write probe PATH COLUMN VALUE, or --from FILE")
    return values
