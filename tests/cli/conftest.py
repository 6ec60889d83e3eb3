"""A lake under a policy, and what every answer of the command line keeps to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testing import tables
from testing.tables import SECRETS, Mode

POLICY = """
[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = { fpp = 0.01 }
[columns.iban]
key = "k_finance"
bloom = true
[columns.city]
bloom = { fpp = 0.05, max_bytes = 65536 }
"""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two encrypted files of customers in ``lake/out``, a keyring and a policy beside them."""
    (tmp_path / "out").mkdir()
    for part in range(2):
        tables.write(
            tmp_path / "out" / f"part-{part}.parquet",
            tables.customers(900, seed=part).slice(part * 300, 600),
            Mode.ENCRYPTED,
            row_group_size=300,
        )
    (tmp_path / "policy.toml").write_text(POLICY)
    keyring = tmp_path / "keyring.json"
    keyring.write_text(tables.keyring_json())
    keyring.chmod(0o600)
    return tmp_path


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    """No traceback and no secret, whatever happened."""
    for text in (done.stdout, done.stderr):
        assert "Traceback" not in text
        assert not [secret for secret in SECRETS if secret in text]


def assert_error(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert_clean(done)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("secure-bloom: ") for line in lines), done.stderr
    assert any(line.startswith("secure-bloom: error: ") for line in lines)
    for word in words:
        assert word in done.stderr
