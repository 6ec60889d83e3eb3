"""What a run over the files of a table gives to the table's log, and gets from it.

``Work`` writes the new files of some tasks, and returns their sizes. The ``rewrite`` of a table
format calls it, commits the new files, and returns a TableChange.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from secure_bloom.adding.report import FileAddReport, TableCommit
from secure_bloom.adding.run import FileTask
from secure_bloom.errors import PolicyError

#: Writes the new files of some tasks.  Returns, by the path of the old file, the size of the new
#: one, or None where the task failed.  A file that needs no new one is left out.
Work = Callable[[Sequence[FileTask]], Mapping[str, int | None]]

#: The note of a file whose replacement was given up.
GONE: Final = "another writer took it out of the table meanwhile, so its new file was removed again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """The result of a run: its commits, and the old files that others removed meanwhile."""

    commits: tuple[TableCommit, ...]
    gone: frozenset[str]
    notes: tuple[str, ...] = ()


class WrittenFile(Protocol):
    """The report of a file that a run may have rewritten."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def bytes_after(self) -> int | None: ...  # noqa: D102
    @property
    def changes(self) -> bool: ...  # noqa: D102


class AnyTableRun(Protocol):
    """A run over the live files of a table, whatever its format.

    ``root`` is the table's folder. ``sizes`` maps the path of each file to its size in the log.
    """

    @property
    def root(self) -> str: ...  # noqa: D102
    @property
    def paths(self) -> list[str]: ...  # noqa: D102
    @property
    def sizes(self) -> Mapping[str, int]: ...  # noqa: D102
    def skipped(self) -> Iterable[FileAddReport]: ...  # noqa: D102
    def rewrite(self, work: Work, /, *, dry_run: bool) -> TableChange: ...  # noqa: D102
    def gone(  # noqa: D102
        self, change: TableChange, reports: Iterable[WrittenFile], /
    ) -> frozenset[str]: ...


def new_sizes(reports: Iterable[WrittenFile]) -> dict[str, int | None]:
    """Return the result of each file by its old path: the new size, or None for a failure."""
    return {
        report.path: report.bytes_after if report.changes else None
        for report in reports
        if report.changes or report.status == "failed"
    }


def with_gone_files(
    reports: Iterable[FileAddReport], gone: Collection[str]
) -> Iterator[FileAddReport]:
    """Yield the reports. A file that other writers removed meanwhile is unchanged, with a note."""
    for report in reports:
        if report.path not in gone:
            yield report
            continue
        yield replace(
            report,
            status="unchanged",
            bytes_after=report.bytes_before,
            filters=(),
            error=None,
            hint=None,
            causes=(),
            notes=(*report.notes, GONE),
        )


def check_commit_every(commit_every: int | None) -> None:
    """Raise PolicyError unless ``commit_every`` is at least 1."""
    if commit_every is not None and commit_every < 1:
        raise PolicyError(f"commit_every is {commit_every}, it must be at least 1")
