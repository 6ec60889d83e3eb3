"""The keys of a run, made from the arguments of a caller: keys, a policy, what it accepts."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from secure_bloom.encryption.keys import ExplicitKeys, KeyResolver, Keyring, KmsClient, asked_once
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

GivenKeys: TypeAlias = Keyring | KmsClient | ExplicitKeys | None
GivenPolicy: TypeAlias = "KeyPolicy | str | PathLike[str] | None"


def trust_of(
    policy: GivenPolicy, *, allow_unverified: bool = False, allow_unprotected: bool = False
) -> Trust:
    """The trust of a run, from the caller's arguments; PolicyError for a policy that is none."""
    return Trust(
        policy=loaded_policy(policy),
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
    )


def loaded_policy(policy: GivenPolicy) -> KeyPolicy | None:
    """The policy, from its file where a path is given; PolicyError for what is none."""
    if policy is None:
        return None
    # Imported here: most probes have no policy.
    from secure_bloom.encryption.policy import KeyPolicy

    if isinstance(policy, str | PathLike):
        return KeyPolicy.load(policy)
    if not isinstance(policy, KeyPolicy):
        raise PolicyError(
            f"policy is of type {type(policy).__name__}, wanted a KeyPolicy or the path of one"
        )
    return policy


def keys_of(keys: GivenKeys, policy: KeyPolicy | None) -> GivenKeys:
    """The keys given, else the KMS of the policy, else none."""
    # Keys that are given win: whoever gives some may have no way to the policy's KMS.
    return policy.kms_client() if keys is None and policy is not None and policy.kms else keys


def resolver_of(keys: GivenKeys, trust: Trust) -> KeyResolver:
    """The keys of a run that reads; a KMS is asked once for each wrapped key."""
    return KeyResolver(asked_once(keys_of(keys, trust.policy)), trust)
