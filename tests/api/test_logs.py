"""What functions that write files log: how many there are, and how many were done."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.tables import customers, keyring_json

_POLICY = """[kms]
client = "keyring"
keyring = "keyring.json"
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
"""


def test_a_run_logs_two_lines_of_numbers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "secure_bloom")
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("a", "b"):
        pq.write_table(customers(5), lake / f"{name}.parquet")
    (lake / "c.parquet").write_bytes(b"damaged")
    (tmp_path / "policy.toml").write_text(_POLICY)
    (tmp_path / "keyring.json").write_text(keyring_json())
    (tmp_path / "keyring.json").chmod(0o600)
    assert len(sb.add_bloom_filters(lake, columns=["email"]).failed) == 1
    assert len(sb.reencrypt(lake, policy=tmp_path / "policy.toml").failed) == 1
    lines = [(it.name, it.getMessage()) for it in caplog.records]
    assert [name for name, _ in lines] == ["secure_bloom.runs"] * 4
    shown = [re.sub(r"[0-9.]+ seconds", "N seconds", text) for _, text in lines]
    assert shown == ["begin: 3 files", "end: 3 files, 1 failed, N seconds"] * 2
    assert capsys.readouterr().err == ""
