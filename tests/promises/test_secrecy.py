"""Messages, logs and reports hold no key bytes and no cell values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.surgery import assert_tells_no_secret, filter_place, flip
from testing.tables import KEYRING, Mode, customers, keyring_json, write

VERBS: dict[str, Callable[[Path], Any]] = {
    "inspect": lambda path: sb.inspect(path, keys=KEYRING),
    "audit": lambda path: sb.audit(path, policy=path.with_name("policy.toml"), keys=KEYRING),
    "rotate": lambda path: sb.rotate_keys(
        path, policy=path.with_name("policy.toml"), keys=KEYRING, dry_run=True
    ),
}
POLICY = """
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
bloom = true
[columns.iban]
key = "k_finance"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An encrypted file with filters, a policy and a keyring beside it."""
    path = write(tmp_path / "x.parquet", customers(500), Mode.ENCRYPTED)
    (tmp_path / "policy.toml").write_text(POLICY)
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    keyring.chmod(0o600)
    sb.add_bloom_filters(path, columns="email", keys=KEYRING)
    return path


@pytest.mark.parametrize("verb", VERBS)
def test_reports_hold_no_key_bytes_and_no_cell_values(path: Path, verb: str) -> None:
    report = VERBS[verb](path)
    assert_tells_no_secret(report.to_json())
    assert_tells_no_secret(repr(report))


def test_messages_hold_no_key_bytes_and_no_cell_values(path: Path) -> None:
    flip(path, filter_place(path, 0, "email").stop - 1)
    with pytest.raises(sb.IntegrityError) as caught:
        sb.read_table(path, where=[("email", "=", "user1@example.com")], keys=KEYRING)
    assert_tells_no_secret(f"{caught.value} {caught.value.hint} {caught.value!r}")


def test_logs_hold_no_key_bytes_and_no_cell_values(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        sb.read_table(path, where=[("email", "=", "user1@example.com")], keys=KEYRING)
        sb.add_bloom_filters(path, columns="iban", keys=KEYRING)
    assert_tells_no_secret(caplog.text)


@pytest.mark.parametrize("verb", ["inspect", "audit", "add"])
def test_a_terminal_shows_no_key_bytes_and_no_cell_values(path: Path, verb: str) -> None:
    options = ["--policy", path.with_name("policy.toml")]
    done = run(verb, path, *options, "--keyring", path.with_name("keyring.json"), "-v")
    assert done.stdout
    assert_tells_no_secret(done.stdout + done.stderr)
