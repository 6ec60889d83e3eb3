"""The matrix: each cell has its worst state, and nothing unknown is clean."""

from __future__ import annotations

from secure_bloom.auditing.findings import AuditReport, Finding
from secure_bloom.auditing.formats.matrix import WHOLE_FILE, Matrix, matrix_of
from secure_bloom.auditing.formats.mistakes import State, group_report
from tests.auditing.formats.reports import (
    COLUMNS,
    day_paths,
    filter_missing,
    finding,
    large_report,
    unchecked,
)

PATHS = ("lake/a", "lake/b", "lake/c")


def matrix(
    *found: Finding, ignored: tuple[Finding, ...] = (), paths: tuple[str, ...] = PATHS
) -> Matrix:
    report = AuditReport(findings=found, ignored=ignored, paths=paths, columns=COLUMNS)
    return matrix_of(report, group_report(report))


def states(table: Matrix, label: str) -> dict[str | None, State]:
    row = next(row for row in table.rows if row.files.label == label)
    return {c: cell.state for c, cell in zip(table.columns, row.cells, strict=True)}


def test_a_cell_is_as_bad_as_its_worst_finding() -> None:
    table = matrix(filter_missing("lake/b"), finding(path="lake/b"), filter_missing("lake/b"))
    assert states(table, "b")["email"] is State.CRITICAL
    assert states(table, "b")["iban"] is State.CLEAN
    assert set(states(table, "a").values()) == {State.CLEAN}


def test_a_file_that_could_not_be_checked_has_no_clean_cell() -> None:
    table = matrix(unchecked("lake/b"), filter_missing("lake/b"))
    assert states(table, "b") == {
        WHOLE_FILE: State.UNCHECKED,
        "email": State.LOW,
        "iban": State.UNCHECKED,
        "national_id": State.UNCHECKED,
        "country": State.UNCHECKED,
    }
    assert State.UNCHECKED not in states(table, "a").values()


def test_a_column_that_could_not_be_checked_leaves_the_others() -> None:
    table = matrix(unchecked("lake/b", "iban"))
    assert [s for s in states(table, "b").values() if s is not State.CLEAN] == [State.UNCHECKED]


def test_ignored_findings_are_not_clean() -> None:
    table = matrix(ignored=(filter_missing("lake/a"), unchecked("lake/c")))
    assert states(table, "a")["email"] is State.IGNORED
    assert set(states(table, "c").values()) == {State.IGNORED}


def test_a_folder_counts_its_files_by_state() -> None:
    paths = tuple(day_paths(4, 100))
    table = matrix(finding(path=paths[0]), *map(filter_missing, paths[:40]), paths=paths)
    row = table.rows[0]
    cell = row.cells[table.columns.index("email")]
    assert row.files.label == "dt=2026-01-01/"
    assert {state: len(files) for state, files in cell.files.items()} == {
        State.CRITICAL: 1,
        State.LOW: 40,
    }


def test_files_and_columns_that_only_findings_name_are_there() -> None:
    table = matrix(finding(path="lake/_metadata", column="phone"))
    assert states(table, "_metadata")["phone"] is State.CRITICAL


def test_findings_without_a_file_are_a_row_of_their_own() -> None:
    table = matrix(finding(path=None, column="iban"))
    assert states(table, "policy, or all files")["iban"] is State.CRITICAL
    assert not table.rows[0].files.paths
    assert len(matrix(finding(path="lake/a")).rows) == 3


def test_a_large_audit_is_a_table_of_a_page() -> None:
    report = large_report()
    table = matrix_of(report, group_report(report))
    assert len(table.rows) == 100
    assert table.hidden == 0


def test_of_too_many_columns_the_worst_are_kept() -> None:
    columns = [f"c{n}" for n in range(3000)]
    found = [finding(path="lake/a", column="c2999"), filter_missing("lake/a", "c1500")]
    report = AuditReport(findings=tuple(found), paths=PATHS * 1000, columns=tuple(columns))
    table = matrix_of(report, group_report(report))
    assert {WHOLE_FILE, "c2999", "c1500"} < set(table.columns)
    assert table.hidden == 3001 - len(table.columns)
    assert len(table.columns) * len(table.rows) <= 10_000
