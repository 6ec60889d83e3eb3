"""A plan has the files, the keys and what the policy itself gets wrong, before a file is read."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.audit_plan import AuditOptions, plan_audit, selection
from secure_bloom.auditing.findings import Finding, Severity
from secure_bloom.errors import PolicyError
from testing.tables import KEYRING

POLICY = sb.KeyPolicy(columns={})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six files that nobody reads: they hold no Parquet."""
    for number in range(6):
        (tmp_path / f"{number}.parquet").write_bytes(b"none")
    return tmp_path


def test_a_sample_is_spread_over_the_files_and_all_are_listed(folder: Path) -> None:
    plan = plan_audit(folder, POLICY, None, AuditOptions(sample=2))
    assert [Path(file).name for file in plan.files] == ["0.parquet", "3.parquet"]
    assert len(plan.listed) == 6


def test_a_sample_of_no_file_is_refused(folder: Path) -> None:
    with pytest.raises(sb.PolicyError, match="a sample of 0 files"):
        plan_audit(folder, POLICY, None, AuditOptions(sample=0))


def test_an_outsiders_audit_has_no_keys(folder: Path) -> None:
    assert plan_audit(folder, POLICY, KEYRING, AuditOptions()).keys is KEYRING
    assert plan_audit(folder, POLICY, KEYRING, AuditOptions(without_keys=True)).keys is None


def test_a_policy_that_cannot_be_used_is_a_finding_and_no_file_is_audited(folder: Path) -> None:
    policy = folder / "policy.toml"
    policy.write_text("[colums.email]\nkey = 'k_pii'\n")
    plan = plan_audit(folder, policy, None, AuditOptions())
    assert plan.request is None
    assert plan.files == ()
    assert any("colums" in finding.message for finding in plan.findings)


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
