"""A run over files of a Delta table, on one machine or on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.table_change import TableChange, Work, WrittenFile
from secure_bloom.delta.actions import Operation
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.delta.commit import open_table
from secure_bloom.delta.rewrite_table import rewrite_table
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.tables import LiveFile, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """The table, its selected files, and the description of the run for the log."""

    table: Snapshot
    files: tuple[LiveFile, ...]
    names: ColumnNames
    operation: Operation
    commit_every: int | None

    @property
    def paths(self) -> list[str]:
        """The files, as paths that can be opened."""
        return [file.path for file in self.files]

    def skipped(self) -> Iterable[FileAddReport]:
        """Return reports of live files that a run leaves out. A Delta table has none."""
        return ()

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
        """Return files, also failed ones, that others removed from the table during this run."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            # A file that fails and is still live has failed by itself.
            lost -= {file.path for file in open_table(self.table.folder).files}
        return change.gone | lost


def refuse_options_of_files(folder: str, *, in_place: bool, output: bool) -> None:
    """Raise an error for ways of writing that a table's log does not allow."""
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
