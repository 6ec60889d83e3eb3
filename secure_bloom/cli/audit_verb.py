"""``secure-bloom audit``: does every file obey the policy; as text, JSON, SARIF or a page."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.arguments import load_keys, with_common_options
from secure_bloom.cli.commands import progress_bar
from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    from secure_bloom.auditing.findings import AuditReport

EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED = 0, 1, 130
_FILE_WIDTH = 100
_PATH = click.Path(path_type=Path)


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--policy", required=True, type=_PATH, help="Policy file (TOML) to hold against.")
@click.option(
    "--severity",
    metavar="LEVEL",
    help="The lowest that counts: critical, high, medium or low (the default).",
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
    help="Properties of a Spark session (spark-defaults.conf) to hold against the policy too.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "html"]),
    default="text",
    show_default=True,
    help="How to write the report.",
)
@click.option("--output", type=_PATH, metavar="FILE", help="Where to write it, instead of stdout.")
@with_common_options
def audit_command(
    paths: tuple[str, ...],
    policy: Path,
    severity: str | None,
    ignore: tuple[str, ...],
    sample: int | None,
    without_keys: bool,
    check_values: bool,
    spark_properties: Path | None,
    form: str,
    output: Path | None,
    keyring: Path | None,
    as_json: bool,
    verbose: bool,  # noqa: ARG001 - the report is whole without it
) -> int:
    """Hold every file, and the policy itself, against the policy.

    Looks for what is in clear and should not be, under another key, filters that leak, are
    missing or wrong, and whatever else tells of a sensitive column.  Only footers and filters
    are read.  What could not be checked is a finding too.  Ignored findings are counted and shown.

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
                policy=policy,
                keys=load_keys(keyring),
                ignore=ignore,
                severity=severity,
                sample=sample,
                without_keys=without_keys,
                check_values=check_values,
                spark_properties=_properties(spark_properties),
                progress=progress,
            )
    except KeyboardInterrupt:
        click.echo("secure-bloom: error: interrupted; an audit changes nothing", err=True)
        return EXIT_INTERRUPTED
    _write(_FORMS["json" if as_json else form], report, paths, output)
    return EXIT_FINDINGS if report.findings else EXIT_CLEAN


def _properties(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from secure_bloom.auditing.checks.spark_properties import parse_properties

    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise PolicyError("the properties cannot be read as text", path=str(path)) from exc


_Form = Callable[["AuditReport", tuple[str, ...], bool], str]


def _write(form: _Form, report: AuditReport, paths: tuple[str, ...], output: Path | None) -> None:
    text = form(report, paths, output is None and sys.stdout.isatty())
    try:
        if output is None:
            click.echo(text, color=True)
        else:
            output.write_text(text + "\n", encoding="utf-8")
    except BrokenPipeError:
        raise
    except (OSError, UnicodeEncodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it holds what is no text"
        path = "stdout" if output is None else str(output)
        raise PolicyError(f"the report cannot be written: {reason}", path=path) from exc


def _text(report: AuditReport, _paths: tuple[str, ...], on_terminal: bool) -> str:
    from rich.console import Console

    from secure_bloom.auditing.formats.terminal import render_text

    width = None if on_terminal else _FILE_WIDTH
    content = io.StringIO()
    console = Console(file=content, width=width, force_terminal=on_terminal, highlight=False)
    render_text(report, console)
    return content.getvalue().rstrip("\n")


def _json(report: AuditReport, _paths: tuple[str, ...], _on_terminal: bool) -> str:
    return json.dumps(report.to_json(), indent=2)


def _sarif(report: AuditReport, _paths: tuple[str, ...], _on_terminal: bool) -> str:
    from secure_bloom.auditing.formats.sarif import render_sarif

    return render_sarif(report, meanings=_meanings())


def _html(report: AuditReport, paths: tuple[str, ...], _on_terminal: bool) -> str:
    from secure_bloom.auditing.formats.html import render_html

    return render_html(
        report, subject=", ".join(paths), created=datetime.now(UTC), meanings=_meanings()
    )


def _meanings() -> dict[str, str]:
    from secure_bloom.auditing.rules import RULES

    return {rule.id: rule.meaning for rule in RULES.values()}


_FORMS: dict[str, _Form] = {"text": _text, "json": _json, "sarif": _sarif, "html": _html}
