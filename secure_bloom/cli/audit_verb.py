"""``secure-bloom audit``: does every file obey the policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from secure_bloom.cli.arguments import (
    load_keys,
    policy_option,
    with_common_options,
    with_form_options,
    with_table_version,
)
from secure_bloom.cli.print_audit import FORMS, write_report
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.errors import PolicyError

EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED = 0, 1, 130

_PATH = click.Path(path_type=Path)


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML) to check against.", required=True)
@click.option(
    "--severity",
    metavar="LEVEL",
    help="The lowest that counts: critical, high, medium, low (the default) or note.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="ID[:COLUMN]",
    help="Findings that do not count, of one column or all; may be repeated.",
)
@click.option("--sample", type=int, metavar="N", help="Look at N files, spread evenly.")
@click.option("--without-keys", is_flag=True, help="Look as an outsider does, ask no KMS.")
@click.option("--check-values", is_flag=True, help="Look for some values in their filters too.")
@click.option(
    "--spark-properties",
    type=_PATH,
    metavar="FILE",
    help="Properties of a Spark session (spark-defaults.conf) to check against the policy too.",
)
@with_form_options(FORMS, "report")
@with_timeout
@with_table_version
@with_common_options
def audit_command(
    paths: tuple[str, ...],
    policy_path: Path,
    spark_properties: Path | None,
    form: str,
    output: Path | None,
    keyring: Path | None,
    at: dict[str, Any],
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Hold every file, and the policy itself, against the policy.

    Looks for columns that are in clear or under another key, for filters that leak, are missing or
    wrong, and for anything else that reveals a sensitive column.  Only footers and filters are
    read.  Things that could not be checked are findings, too.  Ignored findings are counted and
    shown.

    \b
    secure-bloom audit out/ --policy keys/policy.toml
    secure-bloom audit out/ --policy keys/policy.toml --format html --output audit.html
    secure-bloom audit out/ --policy keys/policy.toml --severity high --ignore mixed-rules:city

    Exit code: 0 clean, 1 findings, 2 the audit itself failed.
    """
    from secure_bloom.auditing import audit

    try:
        with progress_bar("auditing", quiet=as_json) as progress:
            report = audit(
                paths,
                policy=policy_path,
                keys=load_keys(keyring),
                spark_properties=_properties(spark_properties),
                progress=progress,
                **at,
                **options,
            )
    except KeyboardInterrupt:
        click.echo("secure-bloom: error: interrupted; an audit changes nothing", err=True)
        return EXIT_INTERRUPTED
    write_report("json" if as_json else form, report, paths, output, verbose=verbose)
    return EXIT_FINDINGS if report.findings else EXIT_CLEAN


def _properties(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from secure_bloom.auditing.checks.spark_properties import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise PolicyError("the properties cannot be read as text", path=str(path)) from exc
