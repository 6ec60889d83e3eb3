"""The same mistake is one group, wherever it is; what could not be checked stays apart."""

from __future__ import annotations

from dataclasses import replace

from secure_bloom.auditing.findings import AuditReport, Severity
from secure_bloom.auditing.formats.mistakes import State, group_report
from tests.auditing.formats import reports
from tests.auditing.formats.reports import filter_missing, finding, statistics_in_clear, unchecked


def test_one_mistake_in_many_files_and_columns_is_one_group() -> None:
    found = [
        filter_missing(f"part-{n}", column, row_group=g)
        for n in range(20)
        for column in ("email", "iban")
        for g in (0, 1)
    ]
    (group,) = group_report(AuditReport(findings=tuple(found)))
    assert len(group.paths) == 20
    assert group.columns == ("email", "iban")
    assert group.row_groups == 40


def test_worst_first_then_widest_then_unchecked_then_ignored() -> None:
    found = (
        unchecked("a"),
        replace(filter_missing("a"), id="filter-saturated"),
        filter_missing("a"),
        filter_missing("b"),
        statistics_in_clear("a"),
    )
    report = AuditReport(findings=found, ignored=(finding(path="a"),))
    assert [(group.state, group.id) for group in group_report(report)] == [
        (State.CRITICAL, "statistics-in-clear"),
        (State.LOW, "filter-missing"),
        (State.LOW, "filter-saturated"),
        (State.UNCHECKED, "unchecked-footer"),
        (State.IGNORED, "column-in-clear"),
    ]


def test_groups_of_one_id_stay_together_behind_their_widest() -> None:
    found = (
        *(finding("b", path=path, what="wide") for path in "xyz"),
        *(finding("a", path=path) for path in "xy"),
        finding("b", path="x", what="narrow"),
    )
    groups = group_report(AuditReport(findings=found))
    assert [(group.id, len(group.paths)) for group in groups] == [("b", 3), ("b", 1), ("a", 2)]


def test_endless_wordings_of_one_id_are_one_group() -> None:
    found = tuple(
        finding("filter-damaged", Severity.HIGH, f"part-{n}", what=f"numBytes is {n}")
        for n in range(5000)
    )
    (group,) = group_report(AuditReport(findings=found))
    assert group.what == "numBytes is 0 (and 4,999 like it)"
    assert len(group.paths) == 5000


def test_a_few_wordings_stay_apart() -> None:
    found = tuple(finding(path="a", what=f"the policy asks for k_{n}") for n in range(3))
    assert len(group_report(AuditReport(findings=found))) == 3


def test_every_finding_is_in_one_group() -> None:
    report = reports.large_report()
    groups = group_report(report)
    assert sum(len(group.findings) for group in groups) == len(report.findings) + len(
        report.ignored
    )
