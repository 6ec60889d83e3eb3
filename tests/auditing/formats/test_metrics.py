"""The numbers of an audit."""

from __future__ import annotations

from secure_bloom.auditing.formats.metrics import audit_numbers
from tests.auditing.formats.reports import clean_report, small_report


def test_findings_are_counted_by_severity() -> None:
    for report in (small_report(), clean_report()):
        numbers = {name: number for name, (number, _) in audit_numbers(report, 1.5).items()}
        counted = {name: it for name, it in numbers.items() if name.startswith("findings{")}
        assert sum(counted.values()) == len(report.findings)
        assert numbers["findings_ignored"] == len(report.ignored)
        assert (numbers["files"], numbers["seconds"]) == (report.files, 1.5)
