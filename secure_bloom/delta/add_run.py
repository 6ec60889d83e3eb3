"""A run that adds filters to a Delta table: the same on one machine and on Spark's executors."""

from __future__ import annotations

import json
from dataclasses import dataclass

from secure_bloom.adding.request import FilterRequest
from secure_bloom.delta.actions import Operation
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.delta.commit import open_table
from secure_bloom.delta.rewrite_table import TableChange, Work, rewrite_table
from secure_bloom.delta.selection import TableSelection
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.tables import LiveFile, Snapshot

#: What the table's history calls a commit of filters.
OPERATION = "ADD BLOOM FILTERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRun:
    """The table, its files that are wanted, and the request in the names that these have."""

    table: Snapshot
    files: tuple[LiveFile, ...]
    request: FilterRequest
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


def open_run(
    folder: str,
    request: FilterRequest,
    *,
    where: str | None,
    since: int | None,
    written: int | None = None,
    commit_every: int | None = None,
) -> AddRun:
    """The run on the table in a folder; raises before anything is written."""
    _check_commit_every(commit_every)
    table = open_table(folder)
    names = ColumnNames.of(table.metadata)
    in_files = names.in_files(request)
    selection = TableSelection(where=where, since=since, written=written)
    return AddRun(
        table=table,
        files=tuple(selection.files(table)),
        request=in_files,
        names=names,
        operation=_operation(request, selection),
        commit_every=commit_every,
    )


def _operation(request: FilterRequest, selection: TableSelection) -> Operation:
    """What the table's history says of a run: names of columns, and which files it took."""
    fpps = {name: options.fpp for name, options in request.columns.items()}
    given = {
        "columns": json.dumps(fpps, ensure_ascii=False),
        "replaceFilters": json.dumps(request.replace_filters),
        "predicate": selection.where,
        "since": selection.since,
        "written": selection.written,
    }
    parameters = {name: str(value) for name, value in given.items() if value is not None}
    return Operation(name=OPERATION, parameters=parameters)


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


def _check_commit_every(commit_every: int | None) -> None:
    if commit_every is not None and commit_every < 1:
        raise PolicyError(f"commit_every is {commit_every}, it must be at least 1")
