"""Which findings count."""

from __future__ import annotations

import pytest

from secure_bloom.auditing.findings import Finding, Severity
from secure_bloom.auditing.selection import selection
from secure_bloom.errors import PolicyError


def _finding(severity: Severity = Severity.HIGH, column: str | None = None) -> Finding:
    return Finding(id="column-in-clear", severity=severity, what="w", fix="f", column=column)


def test_a_severity_and_all_above_it_count() -> None:
    chosen = selection((), "medium")
    assert chosen.counts(_finding(Severity.CRITICAL))
    assert chosen.counts(_finding(Severity.MEDIUM))
    assert not chosen.counts(_finding(Severity.LOW))


def test_an_id_is_ignored_everywhere_or_in_one_column() -> None:
    assert not selection(["column-in-clear"], None).counts(_finding(column="email"))
    chosen = selection(["column-in-clear:email"], None)
    assert not chosen.counts(_finding(column="email"))
    assert chosen.counts(_finding(column="iban"))


@pytest.mark.parametrize(("ignore", "severity"), [(["no-such-id"], None), ([], "terrible")])
def test_an_unknown_word_is_refused(ignore: list[str], severity: str | None) -> None:
    with pytest.raises(PolicyError):
        selection(ignore, severity)
