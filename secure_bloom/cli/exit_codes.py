"""End a verb: print its report, print the failed files on stderr, and return the exit code."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from secure_bloom.cli.verbosity import SHOWN_NOTES, is_verbose, print_line, say, wants_summary
from secure_bloom.errors import ReportLostError
from secure_bloom.reports.text import counted

if TYPE_CHECKING:
    from secure_bloom.bloom.verdicts import Verdict

#: Without ``-v`` at most this number of files with the same mistake is named.
_NAMED = 3
EXIT_MAYBE, EXIT_ABSENT, EXIT_ERROR, EXIT_NO_FILTER = 0, 1, 2, 3


class ReportedFile(Protocol):
    """A file of a report that may have failed."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def error(self) -> str | None: ...  # noqa: D102
    @property
    def hint(self) -> str | None: ...  # noqa: D102
    @property
    def causes(self) -> tuple[str, ...]: ...  # noqa: D102


class FilesReport(Protocol):
    """A report of many files."""

    @property
    def failed(self) -> Iterable[ReportedFile]: ...  # noqa: D102
    def to_dict(self) -> dict[str, Any]: ...  # noqa: D102


R = TypeVar("R", bound=FilesReport)
R_contra = TypeVar("R_contra", contravariant=True)


class Printer(Protocol[R_contra]):
    """A function that prints a report for people."""

    def __call__(self, report: R_contra, *, verbose: bool) -> None: ...  # noqa: D102


def print_and_exit_code(report: R, show: Printer[R], *, as_json: bool, verbose: bool) -> int:
    """Print a report, as JSON or with ``show``, and its failed files. Return the exit code.

    Raises ReportLostError if the report of a verb that has written files cannot be printed.
    """
    try:
        if as_json:
            from secure_bloom.cli.terminal_tables import print_json

            print_json(_document(report))
        else:
            show(report, verbose=verbose)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Reports of verbs that only read have no dry run: nothing is lost with them.
        if getattr(report, "dry_run", True):
            raise
        lost = f"the report cannot be written: {error.strerror or 'it failed'}"
        raise report_lost(report, lost) from error
    return print_failures(report.failed)


def _document(report: FilesReport) -> dict[str, Any]:
    """Return the report's document. With ``--summary`` it lists failed files alone."""
    document = report.to_dict()
    if wants_summary():
        files = document["files"]
        document["files"] = [file for file in files if file["status"] == "failed"]
        document["notes"] = document["notes"][:SHOWN_NOTES]
    return document


def report_lost(report: FilesReport, lost: str) -> ReportLostError:
    """Return the error for a lost report. It says how many files of the run are done.

    ``lost`` says which part of the report is lost.
    """
    failed = sum(1 for _ in report.failed)
    rest = "none is done" if failed == len(report.to_dict()["files"]) else "the others are done"
    outcome = f"{counted(failed, 'file')} failed, and {rest}" if failed else "all is done"
    return ReportLostError(
        f"{outcome}, but {lost}",
        hint="run again for a report: finished files are left as they are",
        report=report,
    )


#: A dry run says these in the words of a run: the file stays.
_SAME = ("unchanged", "failed")


def print_outcome(totals: Mapping[str, Any], seconds: float, *, dry_run: bool) -> None:
    """Print how many files of a run have each status, and how long it took."""
    states = ", ".join(
        f"{count:,} {'would be ' if dry_run and status not in _SAME else ''}{status}"
        for status, count in totals["statuses"].items()
    )
    took = f"; {seconds:.1f} seconds" if seconds else ""
    print_line(f"{counted(totals['files'], 'file')}: {states or 'nothing to do'}{took}")


def print_failures(failed: Iterable[ReportedFile]) -> int:
    """Print the failed files on stderr, the same error once. Return the exit code, or 0.

    With ``-v`` every file is named, and the errors that led to an error are printed too.
    """
    alike: dict[tuple[str, str | None], list[ReportedFile]] = {}
    for file in failed:
        alike.setdefault((_without_path(file), file.hint), []).append(file)
    for (_, hint), files in alike.items():
        shown = files if is_verbose() else files[:_NAMED]
        for file in shown:
            say("error", file.error or "")
            for cause in file.causes if is_verbose() else ():
                say("cause", cause)
        if len(files) > len(shown):
            more = counted(len(files) - len(shown), "more file")
            say("error", f"the same in {more}: -v names them")
        if hint:
            say("hint", hint)
    return EXIT_ERROR if alike else 0


def _without_path(file: ReportedFile) -> str:
    """Return the error without the path that it begins with."""
    return (file.error or "").removeprefix(file.path)


def verdict_code(verdicts: Container[Verdict]) -> int:
    """Return the exit code of a probe with these verdicts.

    "Maybe" in any file decides first, then "no filter" in any file.
    """
    # Not all verbs need what a probe does.
    from secure_bloom.bloom.verdicts import Verdict

    if Verdict.MAYBE in verdicts:
        return EXIT_MAYBE
    return EXIT_NO_FILTER if Verdict.NO_FILTER in verdicts else EXIT_ABSENT
