"""From what a caller gives to the keys of a run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from secure_bloom.encryption.access import Access, loaded_policy
from secure_bloom.encryption.kms import ExplicitKeys, KeyNotNamedError, Keyring, KmsClient
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from testing.project import ROOT

POLICY = ROOT / "keys" / "policy.toml"
KEYRING = Keyring.load(ROOT / "keys" / "dev-keyring.json")


class Kms:
    """A KMS that has every key."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return KEYRING.wrap_key(key_bytes, "k_pii")

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return KEYRING.unwrap_key(wrapped_key, "k_pii")


def test_a_policy_is_itself_or_read_from_its_path() -> None:
    policy = KeyPolicy.load(POLICY)
    assert loaded_policy(policy) is policy
    assert loaded_policy(POLICY) == loaded_policy(str(POLICY)) == policy
    assert loaded_policy(None) is None


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="policy is of type dict"):
        Access.of(None, {})  # type: ignore[arg-type]
    with pytest.raises(PolicyError):
        Access.of(None, tmp_path / "nowhere.toml")


def test_keys_that_are_given_go_before_the_kms_of_the_policy() -> None:
    given = ExplicitKeys()
    assert Access.of(given, POLICY).key_source() is given
    assert isinstance(Access.of(None, POLICY).key_source(), Keyring)
    assert Access.of(None, KeyPolicy()).key_source() is None
    assert Access().key_source() is None


def test_a_kms_is_asked_for_the_keys_of_the_policy_alone() -> None:
    wrapped = KEYRING.wrap_key(bytes(16), "k_pii")

    def unwrapped(access: Access, name: str, **options: object) -> bytes:
        kms = access.key_source(**options)  # type: ignore[arg-type]
        assert isinstance(kms, KmsClient)
        return kms.unwrap_key(wrapped, name)

    access = Access.of(Kms(), POLICY)
    assert unwrapped(access, "k_pii") == bytes(16)
    with pytest.raises(KeyNotNamedError):
        unwrapped(access, "k_other")
    assert unwrapped(access, "k_other", also=["k_other"]) == bytes(16)
    assert unwrapped(Access.of(Kms(), POLICY, allow_unprotected=True), "k_other") == bytes(16)
    assert unwrapped(Access.of(Kms(), None), "k_other") == bytes(16)


def test_a_policy_with_keys_and_no_kms_opens_files_in_clear_and_no_more() -> None:
    access = Access(policy=KeyPolicy(footer_key="k_footer"))
    assert access.key_source() is None
    for ask in (access.required_key_source, access.checked_resolver):
        with pytest.raises(PolicyError, match=r"no \[kms\]"):
            ask()
    assert Access(policy=KeyPolicy()).required_key_source() is None


def test_keys_that_the_kms_lacks_are_found_before_any_file_is() -> None:
    lacking = Keyring(master_keys={"k_footer": bytes(16)})
    with pytest.raises(PolicyError, match="k_pii"):
        Access.of(lacking, POLICY).checked_resolver()
    Access.of(lacking, POLICY).resolver()


def test_files_are_accepted_as_the_caller_says() -> None:
    policy = KeyPolicy.load(POLICY)
    strict, lenient = Access(policy=policy), Access(policy=policy, allow_unprotected=True)
    assert strict.resolver().trust.enforced_policy == policy
    assert strict.checked_resolver().trust.enforced_policy == policy
    assert lenient.resolver().trust.enforced_policy is None
    assert strict.describing_resolver().trust.enforced_policy is None
    assert Access(policy=policy, allow_unverified=True).resolver().accepts_unverified
    assert not strict.resolver().accepts_unverified


def test_it_travels_and_does_not_show_its_keys() -> None:
    access = Access.of(KEYRING, POLICY, allow_unverified=True)
    assert pickle.loads(pickle.dumps(access)) == access
    assert repr(access).startswith("Access(policy=")
    assert "Keyring" not in repr(access)
