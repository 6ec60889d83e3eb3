"""A plan has the files, the keys and what the policy itself gets wrong, before a file is read."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.auditing.audit_plan import AuditOptions, plan_audit
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
