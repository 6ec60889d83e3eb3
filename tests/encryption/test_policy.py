"""A KeyPolicy: what no writer can do is refused, and the master keys that it uses are known."""

from __future__ import annotations

import pickle

import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.access import check_master_keys
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
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
