"""A run over files of a Delta table: on one machine as on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from secure_bloom.delta.actions import Operation
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.delta.commit import open_table
from secure_bloom.delta.rewrite_table import TableChange, Work, rewrite_table
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.tables import LiveFile, Snapshot

#: The note of a file that this happened to.
GONE = "another writer took it out of the table meanwhile, so its new file was removed again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """The table, its files that are wanted, and what the log is to say of the run."""

    table: Snapshot
    files: tuple[LiveFile, ...]
    names: ColumnNames
    operation: Operation
    commit_every: int | None

    @property
    def paths(self) -> list[str]:
        """The files as they are opened."""
        return [file.path for file in self.files]

    def rewrite(self, work: Work, *, dry_run: bool) -> TableChange:
        """Do the work, and commit it."""
        return rewrite_table(
            self.table,
            self.files,
            work,
            self.operation,
            commit_every=self.commit_every,
            dry_run=dry_run,
        )

    def gone(self, change: TableChange, reports: Iterable[WrittenFile]) -> frozenset[str]:
        """Files that others took out of the table while this run worked, failed ones among them."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            # A file that fails and is still live has failed by itself.
            lost -= {file.path for file in open_table(self.table.folder).files}
        return change.gone | lost


class WrittenFile(Protocol):
    """The report of a file that a run may have written anew."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def bytes_after(self) -> int | None: ...  # noqa: D102
    @property
    def changes(self) -> bool: ...  # noqa: D102


def new_sizes(reports: Iterable[WrittenFile]) -> dict[str, int | None]:
    """The results of files: the size of the new one by the old path, None for a failure."""
    return {
        report.path: report.bytes_after if report.changes else None
        for report in reports
        if report.changes or report.status == "failed"
    }


def check_commit_every(commit_every: int | None) -> None:
    """Raise PolicyError for a number that is none."""
    if commit_every is not None and commit_every < 1:
        raise PolicyError(f"commit_every is {commit_every}, it must be at least 1")


def refuse_options_of_files(folder: str, *, in_place: bool, output: bool) -> None:
    """Raise for ways of writing that a table's log rules out."""
    if in_place:
        raise UnsupportedFeatureError(
            "files of a Delta table are never changed in place: its log records their sizes",
            hint="leave out --in-place: new files take their places by a commit",
            path=folder,
        )
    if output:
        raise UnsupportedFeatureError(
            "a Delta table is not written to another folder: there it would have no log",
            hint="leave out --output: new files take their places by a commit",
            path=folder,
        )
