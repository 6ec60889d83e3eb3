"""A KeyPolicy: what no writer can do is refused, and the master keys that it uses are known."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path

import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.access import check_master_keys
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy, draft_policy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.encryption.policy_text import KMS_LINES, policy_text
from secure_bloom.errors import KeyUnavailableError, PolicyError
from testing.project import ROOT

DEFAULT = ROOT / "keys" / "policy.toml"


class TestMaking:
    def test_the_footers_mode_follows_its_key(self) -> None:
        assert KeyPolicy().footer_mode is FooterMode.PLAINTEXT
        assert KeyPolicy(footer_key="kf").footer_mode is FooterMode.ENCRYPTED

    @pytest.mark.parametrize(
        "fields",
        [
            {"footer_mode": FooterMode.SIGNED},
            {"footer_key": "kf", "footer_mode": FooterMode.PLAINTEXT},
            {"footer_key": " "},
            {"columns": {"a": ColumnRule(path="a", key="k")}},
        ],
    )
    def test_what_no_writer_can_do_is_refused(self, fields: dict) -> None:
        with pytest.raises(PolicyError):
            KeyPolicy(**fields)

    def test_it_travels_without_keys(self) -> None:
        policy = KeyPolicy.load(DEFAULT)
        shipped = pickle.dumps(policy)
        assert pickle.loads(shipped) == policy
        keyring = Keyring.load(DEFAULT.parent / "dev-keyring.json")
        assert not any(key in shipped for key in keyring.master_keys.values())

    def test_a_policy_without_a_kms_says_so(self) -> None:
        with pytest.raises(PolicyError, match=r"no \[kms\]"):
            KeyPolicy().kms_client()


class TestMasterKeys:
    policy = KeyPolicy(footer_key="k_foter", columns={"a": ColumnRule(path="a", key="k_pii")})

    def test_unknown_ones_are_listed_with_close_matches(self) -> None:
        keyring = Keyring(master_keys={"k_footer": bytes(16), "k_pii": bytes(16)})
        with pytest.raises(PolicyError, match="does not have: k_foter") as error:
            check_master_keys(self.policy, keyring)
        assert error.value.hint == "k_foter: did you mean 'k_footer'?"

    def test_a_keyring_with_all_master_keys_passes(self) -> None:
        check_master_keys(
            self.policy, Keyring(master_keys={"k_foter": bytes(16), "k_pii": bytes(16)})
        )

    def test_a_client_without_an_inventory_is_not_asked(self) -> None:
        class Remote:
            def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
                raise KeyUnavailableError("asked")

            def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
                raise KeyUnavailableError("asked")

        check_master_keys(self.policy, Remote())


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


def test_every_column_is_named_and_those_without_a_telling_name_are_commented_out() -> None:
    text = policy_text([("email", "text"), ("id", "INT64")], client="keyring")
    assert tomllib.loads(text)["columns"].keys() == {"email"}
    assert any(line.startswith("#") and "id" in line for line in text.splitlines())


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
