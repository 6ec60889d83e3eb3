"""A policy, keys or moves that no run can work with are refused before any file is opened."""

from __future__ import annotations

import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.rekeying.rekey_work import reencryption, rotation
from testing.tables import KEYRING

POLICY = sb.KeyPolicy(
    footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
)
UNKNOWN = sb.KeyPolicy(footer_key="k_nowhere")


def test_a_policy_that_encrypts_nothing_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="encrypts nothing") as caught:
        reencryption(sb.KeyPolicy(), KEYRING)
    assert "decrypt" in str(caught.value.hint)


@pytest.mark.parametrize("keys", [None, sb.ExplicitKeys(footer=bytes(16))])
def test_new_keys_need_a_kms(keys: sb.ExplicitKeys | None) -> None:
    with pytest.raises(sb.PolicyError, match="no KMS to wrap new keys"):
        reencryption(POLICY, keys)
    with pytest.raises(sb.PolicyError, match="there is no KMS"):
        rotation(POLICY, {}, keys)


def test_a_master_key_that_the_kms_does_not_have_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="k_nowhere"):
        reencryption(UNKNOWN, KEYRING)
    with pytest.raises(sb.PolicyError, match="k_nowhere"):
        rotation(UNKNOWN, {}, KEYRING)


def test_a_move_to_a_key_that_is_moved_itself_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="both old and new keys of moves: k_footer, k_pii"):
        rotation(POLICY, {"k_pii": "k_footer", "k_footer": "k_pii"}, KEYRING)
    with pytest.raises(sb.PolicyError, match="does not have master keys k_nowhere"):
        rotation(POLICY, {"k_pii": "k_nowhere"}, KEYRING)
