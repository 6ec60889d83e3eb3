"""``secure-bloom inspect``: footers, encryption, keys and filters of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from secure_bloom.cli.arguments import (
    load_keys,
    load_policy,
    policy_option,
    with_common_options,
    with_table_version,
)
from secure_bloom.cli.exit_codes import print_failures
from secure_bloom.cli.timeout import with_timeout

EXIT_WRONG_FILTER = 1


@click.command("inspect")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("For its [kms].")
@click.option("--check", is_flag=True, help="Read the values too, and look for each in its filter.")
@with_timeout
@with_table_version
@with_common_options
def inspect_command(
    paths: tuple[str, ...],
    policy_path: Path | None,
    check: bool,
    keyring: Path | None,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
) -> int:
    """Show footers, encryption, keys and filters of files.

    Without any key it shows the footer mode, the algorithm, key names, and all of a plain file.

    \b
    secure-bloom inspect out/ --keyring keys/dev-keyring.json
    secure-bloom inspect out/ --check

    Exit code: 0 done, 1 with --check: a filter misses values of its column, 2 error.
    """
    from secure_bloom.cli.print_inspect import print_inspect_report
    from secure_bloom.cli.terminal_tables import print_json
    from secure_bloom.inspection import inspect

    report = inspect(
        paths, keys=load_keys(keyring), policy=load_policy(policy_path), check=check, **at
    )
    if as_json:
        print_json(report.to_dict())
    else:
        print_inspect_report(report, verbose=verbose)
    failed = [file for file in report.files if file.error is not None]
    return print_failures(failed) or (EXIT_WRONG_FILTER if report.wrong else 0)
