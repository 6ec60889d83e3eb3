"""Add filters to a Delta table: on one machine, and on Spark's executors."""

from __future__ import annotations

import json
from dataclasses import dataclass

from secure_bloom.adding.report import FileAddReport
from secure_bloom.adding.request import FilterRequest
from secure_bloom.adding.table_change import check_commit_every
from secure_bloom.delta.actions import Operation
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.delta.commit import open_table
from secure_bloom.delta.selection import TableSelection
from secure_bloom.delta.table_run import TableRun

#: The name of a commit of filters in the table's history.
OPERATION = "ADD BLOOM FILTERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRun(TableRun):
    """A run that adds filters. Its request has the names of columns that the table's files have."""

    request: FilterRequest

    def in_report(self, report: FileAddReport) -> FileAddReport:
        """Return the report with the table's names of columns."""
        return self.names.in_report(report)


def open_run(
    folder: str,
    request: FilterRequest,
    chosen: TableSelection,
    *,
    commit_every: int | None = None,
) -> AddRun:
    """Return the run on the table in a folder. Its errors come before anything is written."""
    check_commit_every(commit_every)
    table = open_table(folder)
    names = ColumnNames.of(table.metadata)
    return AddRun(
        table=table,
        request=names.in_files(request),
        files=tuple(chosen.files(table)),
        names=names,
        operation=_operation(request, chosen),
        commit_every=commit_every,
    )


def _operation(request: FilterRequest, chosen: TableSelection) -> Operation:
    """Return the description of a run for the table's history.

    It names the columns, and how the files were chosen.
    """
    fpps = {name: options.fpp for name, options in request.columns.items()}
    given = {
        "columns": json.dumps(fpps, ensure_ascii=False),
        "replaceFilters": json.dumps(request.replace_filters),
        "predicate": chosen.where,
        "since": chosen.since,
        "written": chosen.written,
    }
    parameters = {name: str(value) for name, value in given.items() if value is not None}
    return Operation(name=OPERATION, parameters=parameters)
