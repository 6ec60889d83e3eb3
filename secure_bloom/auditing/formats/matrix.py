"""Arrange an AuditReport as a matrix of files, or folders, by columns. A cell has its worst state.

A cell is clean only if nothing is wrong or unchecked there: a file that could not be checked as a
whole leaves each of its columns unchecked.  A cell is blank, with the reason, if its files were not
read or have no such column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from secure_bloom.auditing.findings import AuditReport, Finding
from secure_bloom.auditing.formats.mistakes import (
    Mistake,
    PathRow,
    State,
    common_folder,
    is_unchecked,
    path_rows,
)
from secure_bloom.reports.text import counted

_MOST_ROWS = 366
_MOST_CELLS = 8_000
_MOST_COLUMNS = 80
#: The first column of the matrix: findings about a file as a whole.
WHOLE_FILE = None
_Column = str | None


@dataclass(slots=True, kw_only=True)
class Cell:
    """One column in the files of one row: its files by their state.

    ``groups`` are the indexes of the mistakes that have findings here, by state.
    """

    files: dict[State, set[str | None]] = field(default_factory=dict)
    groups: dict[State, dict[int, None]] = field(default_factory=dict)
    #: Why the cell says nothing, or None.
    blank: str | None = None

    @property
    def state(self) -> State:
        """The worst state of a file in this cell."""
        return min(self.files, key=lambda state: state.rank, default=State.CLEAN)

    def add(self, state: State, group: int, path: str | None) -> None:
        """Add a finding."""
        self.files.setdefault(state, set()).add(path)
        self.groups.setdefault(state, {})[group] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The cells of some files, in the order of the matrix's columns."""

    files: PathRow
    cells: tuple[Cell, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """The states in the row, worst first. ``CLEAN`` is only there if no other state is."""
        states = {state for cell in self.cells for state in cell.files}
        return tuple(sorted(states, key=lambda state: state.rank)) or (State.CLEAN,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Rows by columns. ``hidden`` columns, those with the fewest findings, did not fit."""

    columns: tuple[_Column, ...]
    rows: tuple[Row, ...]
    hidden: int


def matrix_of(report: AuditReport, groups: Sequence[Mistake]) -> Matrix:
    """Return the matrix of a report, small enough for one page whatever the number of files.

    Findings that concern no file, such as mistakes in the policy, are the first row, without files.
    """
    columns = _columns(report, groups)
    # Mistakes come worst first, and so do their columns here.
    worst = dict.fromkeys(column for group in groups for column in group.columns)
    shown = tuple(dict.fromkeys((WHOLE_FILE, *worst, *columns)))[:_MOST_COLUMNS]
    rows = _rows(report, groups, most=max(min(_MOST_ROWS, _MOST_CELLS // len(shown)), 1))
    cells = _cells(rows, shown, groups)
    made = [
        Row(
            files=row,
            cells=tuple(
                cells.get((index, column)) or Cell(blank=_blank(report, row, column))
                for column in shown
            ),
        )
        for index, row in enumerate(rows)
    ]
    return Matrix(
        columns=shown,
        rows=tuple(sorted(made, key=_badness)),
        hidden=len(columns) - len(shown),
    )


def _blank(report: AuditReport, row: PathRow, column: _Column) -> str | None:
    """Return why nothing is known of a column in these files, or None if it was looked at."""
    known = report.file_columns
    if known is None or not row.paths:
        return None
    unread = sum(path not in known for path in row.paths)
    if unread:
        return f"{unread:,} of {counted(len(row.paths), 'file')} not looked at"
    if column is WHOLE_FILE or any(
        it == column or it.startswith(f"{column}.")
        for columns in {known[path] for path in row.paths}
        for it in columns
    ):
        return None
    return "no such column here"


def _badness(row: Row) -> tuple[bool, int, int]:
    """Return a sort key: the row without files first, then the worst rows.

    Equally bad rows keep the order of their names.
    """
    worst = row.states[0]
    return bool(row.files.paths), worst.rank, -sum(cell.state is worst for cell in row.cells)


def _columns(report: AuditReport, groups: Sequence[Mistake]) -> tuple[_Column, ...]:
    """Return the column for the whole file, the policy's columns, and others that have findings."""
    found = (column for group in groups for column in group.columns)
    return tuple(dict.fromkeys((WHOLE_FILE, *report.columns, *found)))


def _rows(report: AuditReport, groups: Sequence[Mistake], most: int) -> list[PathRow]:
    """Return rows for the checked files, and for other files that findings name."""
    found = (path for group in groups for path in group.paths)
    paths = tuple(dict.fromkeys((*report.paths, *report.left_out, *found)))
    rows = path_rows(paths, common_folder(report.paths), most)
    everywhere = any(f.path is None for group in groups for f in group.findings)
    return [*([PathRow(label="policy, or all files", paths=())] if everywhere else []), *rows]


def _cells(
    rows: Sequence[PathRow], columns: tuple[_Column, ...], groups: Sequence[Mistake]
) -> dict[tuple[int, _Column], Cell]:
    """Return the cells that are not clean, by row and column."""
    row_of: dict[str | None, int] = {p: i for i, row in enumerate(rows) for p in row.paths}
    row_of[None] = 0
    cells: dict[tuple[int, _Column], Cell] = {}
    for index, group in enumerate(groups):
        for finding in group.findings:
            for column in columns if _hides_columns(finding) else (finding.column,):
                cell = cells.setdefault((row_of[finding.path], column), Cell())
                cell.add(group.state, index, finding.path)
    return cells


def _hides_columns(finding: Finding) -> bool:
    """Return whether the finding means that no column of its file could be checked."""
    return finding.path is not None and finding.column is None and is_unchecked(finding)
