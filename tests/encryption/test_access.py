"""From what a caller gives to the keys of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.access import keys_of, loaded_policy
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from testing.project import ROOT

POLICY = ROOT / "keys" / "policy.toml"


def test_a_policy_is_itself_or_read_from_its_path() -> None:
    policy = KeyPolicy.load(POLICY)
    assert loaded_policy(policy) is policy
    assert loaded_policy(POLICY) == loaded_policy(str(POLICY)) == policy
    assert loaded_policy(None) is None


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="policy is of type dict"):
        loaded_policy({})  # type: ignore[arg-type]
    with pytest.raises(PolicyError):
        loaded_policy(tmp_path / "nowhere.toml")


def test_keys_that_are_given_go_before_the_kms_of_the_policy() -> None:
    policy, given = KeyPolicy.load(POLICY), ExplicitKeys()
    assert keys_of(given, policy) is given
    assert isinstance(keys_of(None, policy), Keyring)
    assert keys_of(None, KeyPolicy()) is None
    assert keys_of(None, None) is None
