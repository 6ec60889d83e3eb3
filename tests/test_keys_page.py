"""docs/keys.md: its policies load, its rights are enough and no more, its class serves."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import KmsClient
from secure_bloom.encryption.kms.providers import _PROVIDERS, check_kms
from secure_bloom.encryption.policy import KeyPolicy
from testing.openbao import OpenBao
from testing.project import ROOT
from testing.tables import customers

PAGE = (ROOT / "docs" / "keys.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def policies() -> list[str]:
    """The policies of one table, one for each KMS."""
    return [text for text in blocks("toml") if "include" not in text]


@pytest.mark.parametrize("text", policies(), ids=lambda text: text.split('"')[1])
def test_every_policy_is_complete(text: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    policy = KeyPolicy.load(path)
    assert policy.spark_properties()
    assert check_kms(policy.kms)[0] in _PROVIDERS


def test_every_provider_has_a_policy() -> None:
    shown = {text.split('"')[1] for text in policies()}
    assert shown == set(_PROVIDERS)


@pytest.fixture
def table(openbao: OpenBao, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table under the keys of the page, and a policy for it at the test's server."""
    for name in ("k_footer", "k_pii"):
        openbao.make_key(name)
    text = policies()[0].replace("https://vault.example.com:8200", openbao.address)
    (tmp_path / "policy.toml").write_text(text)
    monkeypatch.setenv("VAULT_TOKEN", openbao.root)
    write(tmp_path, KeyPolicy.load(tmp_path / "policy.toml").kms_client(), ("k_footer", "k_pii"))
    return tmp_path


def write(folder: Path, kms: KmsClient, keys: tuple[str, str]) -> None:
    properties = pe.CryptoFactory(lambda _: sb.PyarrowKms(kms)).file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(footer_key=keys[0], column_keys={keys[1]: ["email"]}),
    )
    (folder / "table").mkdir(exist_ok=True)
    path = folder / "table" / "0.parquet"
    pq.write_table(customers(20), path, encryption_properties=properties)


def token_of(openbao: OpenBao, role: str) -> str:
    """A token with the rights that the page gives a role, for both keys."""
    [rules] = [text for text in blocks("hcl") if text.startswith(f"# {role}:")]
    policy = rules + rules.replace("k_pii", "k_footer")
    openbao.ask("PUT", f"sys/policies/acl/page-{role}", {"policy": policy})
    return openbao.token(f"page-{role}")


def test_a_writer_can_wrap_and_nothing_else(
    openbao: OpenBao, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOKEN", token_of(openbao, "writer"))
    kms = KeyPolicy.load(table / "policy.toml").kms_client()
    write(table, kms, ("k_footer", "k_pii"))
    with pytest.raises(sb.KeyUnavailableError, match="HTTP 403"):
        sb.read_table(table / "table", policy=table / "policy.toml")


def test_a_step_or_reader_can_do_all_of_its_verbs_and_not_wrap(
    openbao: OpenBao, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOKEN", token_of(openbao, "step"))
    policy = table / "policy.toml"
    [added] = sb.add_bloom_filters(table / "table", policy=policy).files
    assert added.status == "added"
    assert sb.read_table(table / "table", policy=policy).num_rows == 20
    verdicts = sb.probe(table / "table", "email", ["no@x"], policy=policy).verdicts
    assert set(verdicts) == {sb.Verdict.ABSENT}
    with pytest.raises(sb.KeyUnavailableError, match="HTTP 403"):
        KeyPolicy.load(policy).kms_client().wrap_key(bytes(16), "k_pii")
    found = sb.audit(table / "table", policy=policy)
    assert {finding.id for finding in found.findings} == {"policy-key-unusable"}
    assert not sb.audit(table / "table", policy=policy, ignore=["policy-key-unusable"]).findings


def test_an_auditor_can_audit(
    openbao: OpenBao, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sb.add_bloom_filters(table / "table", policy=table / "policy.toml")
    monkeypatch.setenv("VAULT_TOKEN", token_of(openbao, "auditor"))
    assert not sb.audit(table / "table", policy=table / "policy.toml").findings


def test_the_class_of_ones_own_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [source] = [text for text in blocks("python") if "class OurKms" in text]
    (tmp_path / "our_kms_of_the_page.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[kms]\nclient = "our_kms_of_the_page:OurKms"\ntenant = "lake"\n'
        '[footer]\nkey = "lake/footer"\n[columns.email]\nkey = "lake/pii"\nbloom = true\n'
    )
    write(tmp_path, KeyPolicy.load(policy).kms_client(), ("lake/footer", "lake/pii"))
    assert sb.read_table(tmp_path / "table", policy=policy).num_rows == 20
