"""A Delta table that a run writes to: what it refuses, and how its history names the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.delta.actions import all_columns, column_names
from secure_bloom.lakes.delta.history import older_names
from secure_bloom.lakes.delta.log_commit import open_table
from secure_bloom.lakes.delta.replacements import Operation
from secure_bloom.lakes.delta.selection import TableSelection
from secure_bloom.lakes.delta.table_run import TableRun, open_run
from secure_bloom.lakes.writable_table import IsSecret, TableChange, TableChoice, WritableTable
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.storage.column_mapping import (
    ColumnMapping,
    OlderColumn,
    Path,
    older_columns,
)

#: Verb -> the name of its commits in the history of a table.
_OPERATIONS: Final = {
    "add": "ADD BLOOM FILTERS",
    "reencrypt": "REENCRYPT",
    "rotate": "ROTATE KEYS",
}


class WritableDelta(WritableTable):
    """A Delta table that a run writes to."""

    def __init__(self, folder: str, choice: TableChoice) -> None:
        _refuse_options(folder, choice)
        self._choice = choice
        self._table = open_table(folder)
        self.names = all_columns(self._table.metadata)

    @property
    def opened_names(self) -> ColumnMapping | None:
        """The names with which files are opened, or None if files have the table's names."""
        return column_names(self._table.metadata)

    def older_columns(self) -> list[OlderColumn]:
        """Return the columns that have another name in older versions of the log."""
        names = self.opened_names
        # Without column mapping no column is dropped or renamed, and files have the table's names.
        return [] if names is None else older_columns(names, older_names(self._table.folder))

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise PolicyError for a column that no file of the table can have."""
        for name in names:
            if name in self._table.metadata.partition_columns:
                raise PolicyError(
                    f"{name} is a partition column: its values are in the table's log, not in "
                    "files",
                    hint="it needs no filter: readers skip whole files by it. No key protects it: "
                    "if it is sensitive, write the table again, partitioned by another column",
                )
            self._check(name)

    def require(self, columns: Iterable[str]) -> None:
        """Raise PolicyError for a column that the table lacks, if the table uses column mapping."""
        for name in columns if self.opened_names is not None else ():
            self._check(name)

    def _check(self, name: str) -> None:
        if self.names.stored(name) is None:
            raise unknown_column(name, (it.name for it in self.names.members.values()))

    def target(self, change: TableChange) -> TableRun:
        """Return where new files go: beside the old ones, and into commits of the log."""
        choice, filters = self._choice, change.filters
        chosen = TableSelection(where=choice.where, since=choice.since, written=choice.written)
        # Names of keys are left out of the history: an encrypted footer hides those of its columns.
        settings = {
            "columns": json.dumps(filters, ensure_ascii=False),
            "replaceFilters": json.dumps(change.replace_filters),
        }
        operation = Operation(
            name=_OPERATIONS[change.verb],
            parameters=settings if filters else {},
            is_secret=self._of_log(change.is_secret),
        )
        hidden = self._of_log(change.is_hidden)
        return open_run(
            self._table, operation, chosen, commit_every=choice.commit_every, is_hidden=hidden
        )

    def _of_log(self, is_secret: IsSecret | None) -> Callable[[Path], bool] | None:
        """Return ``is_secret`` as a function of a column's path in the log alone."""
        if is_secret is None:
            return None
        return lambda path: is_secret(path, self.names.shown(path))


def _refuse_options(folder: str, choice: TableChoice) -> None:
    if choice.in_place:
        raise UnsupportedFeatureError(
            "files of a Delta table are never changed in place: its log records their sizes",
            hint="leave out --in-place: new files take their places by a commit",
            path=folder,
        )
    if choice.output:
        raise UnsupportedFeatureError(
            "a Delta table is not written to another folder: there it would have no log",
            hint="leave out --output: new files take their places by a commit",
            path=folder,
        )
    if choice.branch is not None:
        raise PolicyError("branch is for Iceberg tables: a Delta table has none", path=folder)
