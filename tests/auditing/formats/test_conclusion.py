"""The conclusion of an audit is its worst state; nothing looked at is never clean."""

from __future__ import annotations

import pytest

from secure_bloom.auditing.findings import AuditReport, Finding, Severity
from secure_bloom.auditing.formats.mistakes import State, group_report, tallies, verdict


def finding(id_: str, severity: Severity, path: str | None = "a.parquet") -> Finding:
    return Finding(id=id_, severity=severity, what=id_, fix="mend it", path=path)


WRONG = finding("clear-column", Severity.HIGH)
UNCHECKED = finding("unchecked-footer", Severity.MEDIUM)


@pytest.mark.parametrize(
    ("findings", "state", "headline"),
    [
        ((), State.CLEAN, "clean"),
        ((UNCHECKED,), State.UNCHECKED, "nothing wrong found, but not all could be checked"),
        ((WRONG, UNCHECKED), State.HIGH, "the files do not obey the policy"),
        (
            (finding("spark-weaker", Severity.MEDIUM, path=None),),
            State.MEDIUM,
            "the policy, or the configuration of writers, has mistakes",
        ),
    ],
)
def test_the_worst_state_is_the_conclusion(
    findings: tuple[Finding, ...], state: State, headline: str
) -> None:
    report = AuditReport(findings=findings, paths=("a.parquet",), columns_checked=2)
    found = verdict(report, group_report(report))
    assert (found.state, found.headline) == (state, headline)
    assert found.scope == "1 file looked at, 2 of its columns checked"


def test_ignored_findings_and_notes_leave_an_audit_clean() -> None:
    note = finding("unused", Severity.NOTE)
    report = AuditReport(ignored=(WRONG,), notes=(note,), paths=("a.parquet",))
    assert verdict(report, group_report(report)).state is State.CLEAN


def test_an_audit_of_no_file_is_unchecked() -> None:
    found = verdict(AuditReport(), ())
    assert (found.state, found.headline) == (State.UNCHECKED, "no file was looked at")


def test_mistakes_and_their_places_are_counted_by_state() -> None:
    twice = finding("clear-column", Severity.HIGH, path="b.parquet")
    report = AuditReport(findings=(WRONG, twice, UNCHECKED), paths=("a", "b"))
    counts = {it.state: (it.mistakes, it.places) for it in tallies(group_report(report))}
    assert counts[State.HIGH] == (1, 2)
    assert counts[State.UNCHECKED] == (1, 1)
    assert counts[State.LOW] == (0, 0)
    assert State.CLEAN not in counts
