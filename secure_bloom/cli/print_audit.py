"""Print the report of ``secure-bloom audit``: as text, JSON, SARIF or a page."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from secure_bloom.cli.verbosity import tell_note
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import without_commands

if TYPE_CHECKING:
    from secure_bloom.auditing.findings import AuditReport

_FILE_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The place that a report goes to: ``paths`` are what was audited, as its reader named them."""

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
    write_text(FORMS[form](report, page), output)
    # Else a terminal would show nothing, and the exit code alone would tell.
    if output is not None:
        from secure_bloom.auditing.formats.mistakes import group_report, verdict

        tell_note(f"{output}: {verdict(report, group_report(report)).headline}", err=True)


def write_text(text: str, output: Path | None) -> None:
    """Write a report to a file, or to stdout; PolicyError where that cannot be."""
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
