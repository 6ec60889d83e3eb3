"""A finding of a rule: one line, of bounded length."""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule, Severity

RULE = Rule(id="some-rule", severity=Severity.HIGH, meaning="It is wrong.", fix="Mend it.")


def test_a_finding_has_what_its_rule_says() -> None:
    found = RULE.finding("the footer is odd", path="x", row_group=1, column="c")
    assert (found.id, found.severity, found.fix) == ("some-rule", Severity.HIGH, "Mend it.")
    assert (found.path, found.row_group, found.column) == ("x", 1, "c")
    assert "the footer is odd" in found.message


def test_what_a_file_says_cannot_make_a_finding_long() -> None:
    assert len(RULE.finding("x" * 100_000).what) < 1000
