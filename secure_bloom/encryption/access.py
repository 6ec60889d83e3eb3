"""The keys of a run, made from the arguments of a caller: keys, a policy, what it accepts."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.file_keys import KeyResolver, asked_once
from secure_bloom.encryption.kms import ExplicitKeys, KeyInventory, Keyring, KmsClient
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

GivenKeys: TypeAlias = Keyring | KmsClient | ExplicitKeys | None
GivenPolicy: TypeAlias = "KeyPolicy | str | PathLike[str] | None"


def trust_of(
    policy: GivenPolicy, *, allow_unverified: bool = False, allow_unprotected: bool = False
) -> Trust:
    """Return the trust of a run, from the caller's arguments.

    PolicyError for a policy that is none.
    """
    return Trust(
        policy=loaded_policy(policy),
        allow_unverified=allow_unverified,
        allow_unprotected=allow_unprotected,
    )


def loaded_policy(policy: GivenPolicy) -> KeyPolicy | None:
    """Return the policy, from its file where a path is given; PolicyError for what is none."""
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


def keys_of(keys: GivenKeys, policy: KeyPolicy | None, *, any_key: bool = False) -> GivenKeys:
    """Return the keys given, else the KMS of the policy, else None.

    With a policy, a KMS is asked only for master keys that the policy names, unless ``any_key``.
    """
    return guarded_keys(_given_or_of_policy(keys, policy), policy, any_key=any_key)


def guarded_keys(keys: GivenKeys, policy: KeyPolicy | None, *, any_key: bool = False) -> GivenKeys:
    """Return ``keys``; a KMS among them is asked only for master keys that the policy names."""
    if policy is None or any_key or not isinstance(keys, KmsClient):
        return keys
    return policy.guarded(keys)


def resolver_of(keys: GivenKeys, trust: Trust) -> KeyResolver:
    """Return the keys of a run that reads; a KMS is asked once for each wrapped key."""
    return resolver_with(_given_or_of_policy(keys, trust.policy), trust)


def resolver_with(keys: GivenKeys, trust: Trust) -> KeyResolver:
    """Like :func:`resolver_of`, with the given keys alone: the policy's KMS is not asked."""
    guarded = guarded_keys(keys, trust.policy, any_key=trust.allow_unprotected)
    return KeyResolver(asked_once(guarded), trust)


def _given_or_of_policy(keys: GivenKeys, policy: KeyPolicy | None) -> GivenKeys:
    # Keys that are given win: whoever gives some may have no way to the policy's KMS.
    if keys is None and policy is not None and policy.kms:
        return policy.unguarded_kms_client()
    return keys


def check_master_keys(policy: KeyPolicy, kms: KmsClient) -> None:
    """Raise PolicyError for master keys of the policy that ``kms`` knows it does not have.

    A client without ``has_key`` is not asked.  With this client, an unknown key shows when
    something is unwrapped.
    """
    if not isinstance(kms, KeyInventory):
        return
    unknown = sorted(name for name in policy.master_keys() if not kms.has_key(name))
    if unknown:
        # Other clients can say whether they have a key, and not which ones.
        known = kms.master_keys if isinstance(kms, Keyring) else ()
        raise PolicyError(
            f"the policy names master keys that its KMS does not have: {', '.join(unknown)}",
            hint="; ".join(f"{name}: {close_match(name, known)}" for name in unknown),
        )
