"""Mistakes and contradictions in the policy itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import PolicyError
from testing.tables import Mode, customers, keyring_json, write
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import (
    EXAMPLES,
    POLICY,
    Example,
    sound,
    with_rules,
)


class TestPolicies:
    def policy(self, folder: Path, text: str) -> Path:
        path = folder / "policy.toml"
        path.write_text(text)
        return path

    def test_the_first_mistake_of_every_table_is_found(self, tmp_path: Path) -> None:
        policy = self.policy(
            tmp_path,
            '[foter]\nkey = "k"\n[columns.email]\nkee = "k"\n[columns.iban]\nkey = 3\n'
            "[columns.city]\nbloom = { fpp = 7.0 }\n",
        )
        report = Example(path=sound(tmp_path), policy=policy).audit()
        assert ids(report) == [
            "policy-unknown-word",
            "policy-unknown-word",
            "policy-invalid",
            "policy-invalid",
        ]
        assert "did you mean 'footer'" in report.findings[0].what
        assert report.findings[3].column == "city"
        assert (report.files, report.columns_checked) == (0, 0)

    def test_a_contradiction_is_a_finding(self, tmp_path: Path) -> None:
        policy = self.policy(tmp_path, '[columns.email]\nkey = "k_pii"\n')
        report = Example(path=sound(tmp_path), policy=policy).audit()
        assert ids(report) == ["policy-invalid"]

    @pytest.mark.parametrize("text", ["[columns", '[columns.email]\nkey="a"\n[columns.email]\n'])
    def test_a_policy_that_is_not_toml_is_an_error(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(PolicyError, match="not TOML"):
            Example(path=sound(tmp_path), policy=self.policy(tmp_path, text)).audit()

    def test_without_any_keys_the_audit_fails_and_says_why(self, tmp_path: Path) -> None:
        with pytest.raises(PolicyError, match=r"no \[kms\]"):
            Example(path=sound(tmp_path)).audit(keys=None)

    def test_the_policys_own_kms_is_used(self, tmp_path: Path) -> None:
        keyring = tmp_path / "keyring.json"
        keyring.write_text(keyring_json())
        keyring.chmod(0o600)
        policy = replace(
            POLICY, kms={"client": "keyring", "keyring": "keyring.json"}, base=tmp_path
        )
        assert ids(Example(path=sound(tmp_path), policy=policy).audit(keys=None)) == []

    def test_a_column_that_some_files_have_is_known(self, tmp_path: Path) -> None:
        batch(tmp_path, 2)
        more = customers(30).append_column("age", pa.array([7] * 30))
        write(tmp_path / "new.parquet", more, Mode.ENCRYPTED)
        policy = with_rules(age=None)
        assert ids(Example(path=tmp_path, policy=policy).audit()) == []

    def test_where_a_file_cannot_be_read_no_column_is_said_to_be_nowhere(
        self, tmp_path: Path
    ) -> None:
        batch(tmp_path, 1)
        (tmp_path / "broken.parquet").write_bytes(b"PAR1 no footer PAR1")
        policy = with_rules(emial=None)
        assert ids(Example(path=tmp_path, policy=policy).audit()) == ["unchecked-file"]

    def test_the_same_key_at_a_column_and_inside_it_is_no_contradiction(
        self, tmp_path: Path
    ) -> None:
        found = EXAMPLES["policy-two-keys"](tmp_path)
        inner = ColumnRule(path="address.zip", key="k_pii")
        columns = {"address": ColumnRule(path="address", key="k_pii"), "address.zip": inner}
        found.policy = replace(POLICY, columns=columns)
        assert ids(found.audit()) == ["column-wrong-key"]

    def test_a_misspelt_column_comes_with_the_close_one(self, tmp_path: Path) -> None:
        (finding,) = EXAMPLES["policy-column-unknown"](tmp_path).audit().findings
        assert "did you mean email" in finding.what
