"""Exit codes of verbs, and the files of a report that failed, told on stderr."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Protocol

import click

from secure_bloom.cli.terminal import tell

if TYPE_CHECKING:
    from secure_bloom.bloom.probe import Verdict

EXIT_MAYBE, EXIT_ABSENT, EXIT_ERROR, EXIT_NO_FILTER = 0, 1, 2, 3


class ReportedFile(Protocol):
    """A file of a report that may have failed."""

    @property
    def error(self) -> str | None: ...  # noqa: D102
    @property
    def hint(self) -> str | None: ...  # noqa: D102
    @property
    def causes(self) -> tuple[str, ...]: ...  # noqa: D102


def complain(failed: Iterable[ReportedFile]) -> int:
    """Name every failed file on stderr, each hint once, after its files; the exit code, or 0.

    With ``-v`` of the verb that runs, the errors behind an error are told too.
    """
    verbose = click.get_current_context().params.get("verbose", False)
    by_hint: dict[str | None, list[ReportedFile]] = {}
    for file in failed:
        by_hint.setdefault(file.hint, []).append(file)
    for hint, files in by_hint.items():
        for file in files:
            tell(f"secure-bloom: error: {file.error}", err=True)
            for cause in file.causes if verbose else ():
                tell(f"secure-bloom: cause: {cause}", err=True)
        if hint:
            tell(f"secure-bloom: hint: {hint}", err=True)
    return EXIT_ERROR if by_hint else 0


def verdict_code(verdicts: Container[Verdict]) -> int:
    """The exit code of a probe: for a file that may have the value, else one without a filter."""
    # Not all verbs need what a probe does.
    from secure_bloom.bloom.probe import Verdict

    if Verdict.MAYBE in verdicts:
        return EXIT_MAYBE
    return EXIT_NO_FILTER if Verdict.NO_FILTER in verdicts else EXIT_ABSENT
