"""``secure-bloom audit``: check that every file obeys the policy."""

from __future__ import annotations

import io
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from secure_bloom.calling.close_names import near_file
from secure_bloom.cli.progress_bar import progress_bar
from secure_bloom.cli.shared_arguments import (
    form_of,
    load_keys,
    metrics_option,
    policy_option,
    with_common_options,
    with_form_options,
    with_table_version,
)
from secure_bloom.cli.timeout import with_timeout
from secure_bloom.cli.verbosity import is_quiet, print_note, say
from secure_bloom.errors import PolicyError, refused_by_system
from secure_bloom.reports.text import shell_word, without_commands
from secure_bloom.running.bounded_documents import read_bounded

if TYPE_CHECKING:
    from secure_bloom.auditing.findings import AuditReport, Finding


_FILE_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """Where a report is written. ``paths`` are the audited paths as the user named them."""

    paths: tuple[str, ...]
    on_terminal: bool
    verbose: bool


_Form = Callable[["AuditReport", _Page], str]


def write_report(
    form: str,
    report: AuditReport,
    paths: tuple[str, ...],
    output: Path | None,
    *,
    verbose: bool = False,
) -> None:
    """Write the report in this form to a file, or to stdout."""
    on_terminal = output is None and sys.stdout.isatty()
    page = _Page(paths=paths, on_terminal=on_terminal, verbose=verbose)
    write_text(FORMS[form](report, page), output, for_people=form == "text")
    # Else a terminal would show nothing, and the exit code alone would answer.
    if output is not None:
        from secure_bloom.auditing.formats.mistakes import group_report, verdict

        print_note(f"{output}: {verdict(report, group_report(report)).headline}", err=True)


def write_text(text: str, output: Path | None, *, for_people: bool = False) -> None:
    """Write a report to a file, or to stdout.

    A text ``for_people`` is not written to stdout with ``-q``. Raises PolicyError if the report
    cannot be written.
    """
    if output is not None:
        from secure_bloom.storage.output_files import write_report_file

        write_report_file(output, text + "\n", "the report")
        return
    try:
        if not (for_people and is_quiet()):
            click.echo(text, color=True)
    except BrokenPipeError:
        raise
    except (OSError, UnicodeEncodeError) as exc:
        reason = (
            exc.strerror if isinstance(exc, OSError) else "it contains characters that are not text"
        )
        raise PolicyError(f"the report cannot be written: {reason}", path="stdout") from exc


def _text(report: AuditReport, page: _Page) -> str:
    from rich.console import Console

    from secure_bloom.auditing.formats.terminal import render_text

    width = None if page.on_terminal else _FILE_WIDTH
    content = io.StringIO()
    console = Console(file=content, width=width, force_terminal=page.on_terminal, highlight=False)
    render_text(report, console, verbose=page.verbose)
    return content.getvalue().rstrip("\n")


def _json(report: AuditReport, _: _Page) -> str:
    return without_commands(report.to_json())


def _sarif(report: AuditReport, _: _Page) -> str:
    from secure_bloom.auditing.formats.sarif import render_sarif

    return without_commands(render_sarif(report, meanings=_meanings()))


def _html(report: AuditReport, page: _Page) -> str:
    from secure_bloom.auditing.formats.html import render_html

    return render_html(
        report, subject=", ".join(page.paths), created=datetime.now(UTC), meanings=_meanings()
    )


def _meanings() -> dict[str, str]:
    from secure_bloom.auditing.rules import RULES

    return {rule.id: rule.meaning for rule in RULES.values()}


FORMS: dict[str, _Form] = {"text": _text, "json": _json, "sarif": _sarif, "html": _html}


EXIT_CLEAN, EXIT_FINDINGS, EXIT_INTERRUPTED = 0, 1, 130

_PATH = click.Path(path_type=Path)


@click.command("audit")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@policy_option("Policy file (TOML) to check against.", required=True)
@click.option(
    "--severity",
    metavar="LEVEL",
    help="The lowest severity that counts: critical, high, medium, low (the default) or note.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="ID[:COLUMN]",
    help="Findings that do not count, for one column or all. May be repeated.",
)
@click.option("--sample", type=int, metavar="N", help="Check N files, spread evenly.")
@click.option(
    "--without-keys", is_flag=True, help="Check only what an outsider sees, and ask no KMS."
)
@click.option(
    "--check-values",
    is_flag=True,
    help="Also search all files for values of sensitive columns, and look values up in filters.",
)
@click.option("--strict", is_flag=True, help="A column that no rule names is a finding.")
@click.option(
    "--baseline",
    type=_PATH,
    metavar="FILE",
    help="An earlier report (--json): only findings that it does not have make the audit fail.",
)
@metrics_option
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
    metrics: Path | None,
    **options: Any,
) -> int:
    """Check every file, and the policy itself.

    Looks for columns that are in clear or under another key, for filters that leak, are missing or
    wrong, and for anything else that reveals a sensitive column.  Only footers and filters are
    read, unless --check-values searches the lake for values.  Things that could not be checked are
    findings, too.  Ignored findings are counted and shown.

    \b
    secure-bloom audit out/ --policy keys/policy.toml
    secure-bloom audit out/ --policy keys/policy.toml --format html --output audit.html
    secure-bloom audit out/ --policy keys/policy.toml --severity high --ignore mixed-rules:city

    Exit code: 0 clean, 1 findings, 2 the audit itself failed.
    """
    from secure_bloom.api.audit import audit
    from secure_bloom.auditing.findings import audit_numbers
    from secure_bloom.lakes.output_rules import require_report_file

    started, form = time.perf_counter(), form_of(form, as_json=as_json)
    for file in (output, metrics):
        require_report_file(file, policy_path, keyring, spark_properties)
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
        say("error", "interrupted; an audit changes nothing")
        return EXIT_INTERRUPTED
    report = _with_keyring(report, keyring)
    numbers = audit_numbers(report, time.perf_counter() - started)
    try:
        write_report(form, report, paths, output, verbose=verbose)
    finally:
        if metrics is not None:
            from secure_bloom.storage.output_files import write_metrics

            write_metrics(metrics, "audit", numbers)
    return EXIT_FINDINGS if report.findings else EXIT_CLEAN


def _with_keyring(report: AuditReport, keyring: Path | None) -> AuditReport:
    """Return the report with this audit's ``--keyring`` added to the commands in its fixes."""
    if keyring is None:
        return report
    option = f" --keyring {shell_word(str(keyring))}`"

    def with_option(findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(
            replace(it, fix=_COMMAND.sub(lambda found: found[0][:-1] + option, it.fix))
            for it in findings
        )

    return replace(
        report,
        findings=with_option(report.findings),
        ignored=with_option(report.ignored),
        notes=with_option(report.notes),
    )


#: A command in a fix that takes the keys of the audit.
_COMMAND = re.compile(r"`secure-bloom [^`]*`")


def _properties(path: Path | None) -> dict[str, str] | None:
    if path is None:
        return None
    from secure_bloom.auditing.checks.session_properties import parse_properties

    try:
        with path.open("rb") as file:
            return parse_properties(read_bounded(file, "the file of properties").decode())
    except OSError as exc:
        hint = near_file(path) if isinstance(exc, FileNotFoundError) else None
        message = f"the properties cannot be read: {exc.strerror}"
        raise refused_by_system(exc, message, hint=hint, path=str(path)) from exc
    except UnicodeDecodeError as exc:
        raise PolicyError("the properties cannot be read as text", path=str(path)) from exc
