"""A KMS that is down ends every verb with 2 and says why; no verb takes it for a missing key."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.cli import main
from testing.http_servers import http_server
from testing.tables import customers

POLICY = """
[kms]
client = "vault"
address = "{address}"
retry_seconds = 0
[footer]
key = "k_footer"
mode = "{mode}"
[columns.email]
key = "k_pii"
bloom = true
"""
NOWHERE = "http://127.0.0.1:1"
VERBS = {
    "add": ("add", "{table}"),
    "probe": ("probe", "{table}", "email", "user7@example.com"),
    "read": ("read", "{table}"),
    "read where": ("read", "{table}", "--where", "email = 'user7@example.com'"),
    "read without keys": (
        *("read", "{table}", "--where", "email = 'user7@example.com'"),
        "--without-filter-keys",
    ),
    "inspect": ("inspect", "{table}"),
    "hudi show": ("hudi", "show", "{table}"),
    "hudi lookup": ("hudi", "lookup", "{table}", "user7@example.com", "--column", "email"),
    "paimon build": ("paimon", "build", "{table}", "--column", "email"),
    "rotate": ("rotate", "{table}"),
    "reencrypt": ("reencrypt", "{table}", "--new-data-keys"),
    "decrypt": ("decrypt", "{table}", "--output", "{table}/../clear"),
    "audit": ("audit", "{table}"),
    "audit sample": ("audit", "{table}", "--sample", "1", "--severity", "critical"),
}


class Wrapping:
    """A KMS whose wrapped keys look like those of Vault."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return f"vault:v1:{base64.b64encode(bytes(12) + key_bytes + bytes(16)).decode()}"

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise NotImplementedError


@pytest.fixture(params=["encrypted", "plaintext"])
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "table").mkdir()
    keys = pe.CryptoFactory(lambda _: sb.PyarrowKms(Wrapping())).file_encryption_properties(
        pe.KmsConnectionConfig(),
        pe.EncryptionConfiguration(
            footer_key="k_footer",
            column_keys={"k_pii": ["email"]},
            plaintext_footer=request.param == "plaintext",
        ),
    )
    pq.write_table(customers(20), tmp_path / "table" / "0.parquet", encryption_properties=keys)
    path = tmp_path / "policy.toml"
    path.write_text(POLICY.format(address=NOWHERE, mode=request.param))
    return path


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_TOKEN", "hvs.the-token-of-the-test")


def run(policy: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    arguments = [word.format(table=policy.parent / "table") for word in words]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--policy", str(policy)])
    shown = capsys.readouterr()
    return int(str(ended.value.code)), shown.out + shown.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_ends_with_2_and_says_why(
    policy: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    before = (policy.parent / "table" / "0.parquet").read_bytes()
    code, shown = run(policy, capsys, *VERBS[verb])
    assert code == 2, shown
    plain = " ".join(shown.split())
    assert f"{NOWHERE} is not available: no connection: Connection refused" in plain
    assert "keys check" in plain
    assert "finding" not in plain
    assert (policy.parent / "table" / "0.parquet").read_bytes() == before


@pytest.mark.parametrize("verb", VERBS)
def test_verbose_shows_the_cause_without_secrets(
    policy: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code, shown = run(policy, capsys, *VERBS[verb], "-v")
    assert code == 2
    assert "secure-bloom: cause: TransientFailureError: no connection: Connection refused" in shown
    assert "secure-bloom: cause: requests.exceptions.ConnectionError" in shown
    assert "hvs.the-token" not in shown
    assert "secure-bloom: cause" not in run(policy, capsys, *VERBS[verb])[1]


@pytest.mark.parametrize("status", [403, 429, 500, 503, 200])
def test_a_server_that_refuses_everything(
    policy: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """Its token is not taken, it throttles, fails, is sealed, or is something else."""
    body = json.dumps({"errors": ["hvs.the-token-of-the-test is not welcome"]}).encode()
    with http_server(lambda *_: (status, {}, body)) as url:
        policy.write_text(policy.read_text().replace(NOWHERE, url))
        code, shown = run(policy, capsys, "audit", "{table}", "-v")
    assert code == 2, shown
    assert url in shown
    assert f"HTTP {status}: ... is not welcome" in shown or status == 200
    assert "secure-bloom: cause: " in shown or status == 200
    assert "hvs.the-token" not in shown
    assert "vault:v1:" not in shown
