"""A policy to begin with: complete, and nothing in it decided."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from secure_bloom.encryption.policy import draft_policy
from secure_bloom.encryption.policy_text import KMS_LINES, policy_text


@pytest.mark.parametrize("client", KMS_LINES)
def test_a_draft_is_toml_whatever_columns_are_called(client: str) -> None:
    names = ["email", "address.zip", 'a "quoted" name', "ünï", "new\nline"]
    text = policy_text([(name, "BYTE_ARRAY") for name in names], client=client)
    assert tomllib.loads(text)["kms"]["client"] == client


@pytest.mark.parametrize("name", ["emoji \U0001f600", "del \x7f", "null \0", 'q " \\ud83d', "ünï"])
def test_a_name_can_be_uncommented_whatever_it_holds(name: str) -> None:
    text = policy_text([(name, "BYTE_ARRAY")], client="keyring")
    text = text.replace("\n# [columns", "\n[columns").replace('# key = "k_pii"', 'key = "k_pii"')
    assert tomllib.loads(text)["columns"] == {name: {"key": "k_pii"}}
    assert text.isascii()


def test_every_column_is_named_and_commented_out() -> None:
    text = policy_text([("email", "text"), ("id", "INT64")], client="keyring")
    assert "columns" not in tomllib.loads(text)
    for name in ("email", "id"):
        assert any(line.startswith("#") and name in line for line in text.splitlines())


def test_a_draft_with_all_columns_uncommented_has_no_problem(tmp_path: Path) -> None:
    """Some names no policy can name, and two columns may share a dotted name."""
    names = ["", ".", "a.", "a..b", "a.b", "a.b", "email"]
    text = policy_text([(name, "BYTE_ARRAY") for name in names], client="keyring")
    for line in ("[columns", "key =", "bloom ="):
        text = text.replace(f"\n# {line}", f"\n{line}")
    (tmp_path / "policy.toml").write_text(text)
    policy, problems = draft_policy(tmp_path / "policy.toml")
    assert policy is not None
    assert (list(policy.columns), problems) == (["a.b", "email"], ())
    for name in ('""', '"."', '"a."', '"a..b"'):
        assert f"# Column {name} " in text
