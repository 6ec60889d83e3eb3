"""Findings say where and what in one line; a report counts them by severity."""

from __future__ import annotations

import pytest

from secure_bloom.auditing.findings import AuditReport, Finding, Severity, audit_numbers
from tests.auditing.formats.reports import clean_report, small_report


def finding(severity: Severity = Severity.HIGH, **place: object) -> Finding:
    return Finding(id="x", severity=severity, what="is wrong", fix="mend it", **place)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({}, "is wrong"),
        ({"path": "a.parquet"}, "a.parquet: is wrong"),
        (
            {"path": "a.parquet", "row_group": 0, "column": "email"},
            "a.parquet: row group 0: column email: is wrong",
        ),
        ({"column": "email"}, "column email: is wrong"),
    ],
)
def test_the_message_names_the_place_as_far_as_there_is_one(
    place: dict[str, object], message: str
) -> None:
    assert finding(**place).message == message
    assert finding(**place).to_dict()["message"] == message


def test_a_report_counts_findings_by_severity() -> None:
    report = AuditReport(
        findings=(finding(), finding(), finding(Severity.LOW)),
        ignored=(finding(),),
        paths=("a", "b"),
    )
    assert repr(report) == "<AuditReport: 3 findings (2 high, 1 low) in 2 files>"
    assert report.files == report.to_dict()["files"] == 2


def test_severities_are_listed_worst_first() -> None:
    assert [str(it) for it in Severity] == ["critical", "high", "medium", "low", "note"]


def test_a_report_has_a_verdict_and_counts() -> None:
    from secure_bloom.auditing.findings import AuditReport, Severity
    from secure_bloom.auditing.rules import RULES

    wrong = RULES["column-in-clear"].finding("x", path="a")
    doubt = RULES["unchecked-file"].finding("x", path="a")
    report = AuditReport(findings=(wrong, doubt), notes=(wrong,), paths=("a",))
    document = report.to_dict()
    assert document["verdict"] == "findings"
    assert document["counts"] == {
        **dict.fromkeys(map(str, Severity), 0),
        "critical": 1,
        "medium": 1,
        "notes": 1,
        "ignored": 0,
    }
    assert AuditReport(findings=(doubt,), paths=("a",)).verdict == "unchecked"
    assert AuditReport().verdict == "unchecked"
    assert AuditReport(paths=("a",)).verdict == "clean"


def test_findings_are_counted_by_severity() -> None:
    for report in (small_report(), clean_report()):
        numbers = {name: number for name, (number, _) in audit_numbers(report, 1.5).items()}
        counted = {name: it for name, it in numbers.items() if name.startswith("findings{")}
        assert sum(counted.values()) == len(report.findings)
        assert numbers["findings_ignored"] == len(report.ignored)
        assert (numbers["files"], numbers["seconds"]) == (report.files, 1.5)
