"""``secure-bloom probe``: whether values may be in files, by the filters of a column."""

from __future__ import annotations

import click

from secure_bloom.cli.arguments import (
    Access,
    with_access_to_read,
    with_common_options,
)
from secure_bloom.cli.exit_codes import complain, verdict_code


@click.command("probe")
@click.argument("path")
@click.argument("column")
@click.argument("values", nargs=-1, required=True, metavar="VALUE...")
@with_access_to_read
@with_common_options
def probe_command(
    path: str,
    column: str,
    values: tuple[str, ...],
    access: Access,
    as_json: bool,
    verbose: bool,
) -> int:
    """Ask the filters of COLUMN whether VALUE may be in PATH, per file and row group.

    Values are written as a person would: text, 12.50, 2024-03-01, 2024-03-01T10:00:00Z, a UUID,
    hex:00ff for bytes.

    \b
    secure-bloom probe out/ email a@example.com --keyring keys/dev-keyring.json

    Exit code: 0 a value may be there, 1 absent everywhere, 3 some file has no filter, 2 error.
    """
    from secure_bloom.bloom.probe import probe
    from secure_bloom.cli.print_probe import print_probe_report
    from secure_bloom.cli.tables import print_json

    report = probe(
        path,
        column,
        values,
        **access.arguments(),
    )
    if as_json:
        print_json(report.to_dict())
    else:
        print_probe_report(report, verbose=verbose)
    return complain(report.failed) or verdict_code(report.verdicts)
