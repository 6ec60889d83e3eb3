"""The work of a run on one file, made of what a caller gave: here, in other processes, on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from secure_bloom.encryption.access import (
    GivenKeys,
    GivenPolicy,
    keys_of,
    loaded_policy,
    resolver_of,
    trust_of,
)
from secure_bloom.encryption.keys import (
    ExplicitKeys,
    KeyInventory,
    KeyResolver,
    Keyring,
    KmsClient,
    UnwrapsOnce,
    asked_once,
)
from secure_bloom.encryption.policy import KeyPolicy, check_master_keys
from secure_bloom.errors import PolicyError
from secure_bloom.rekeying.new_keys import KeyMaker
from secure_bloom.rekeying.reencryption import Reencryption
from secure_bloom.rekeying.rewrapper import Rewrapper
from secure_bloom.rekeying.rotation import Rotation


def reencryption(
    policy: KeyPolicy | str | PathLike[str],
    keys: GivenKeys,
    *,
    new_data_keys: bool = False,
    dry_run: bool = False,
    only_changes: bool = False,
) -> Reencryption:
    """The work of :func:`.run.reencrypt` on one file; errors as of that."""
    wanted = loaded_policy(policy)
    # Without a [footer] no column can have a key either, so files would come out in clear, in their
    # place.
    if wanted is None or wanted.footer_key is None:
        raise PolicyError(
            "the policy encrypts nothing: it has no [footer]",
            hint="to write files in clear: decrypt",
        )
    opening = keys_of(keys, wanted)
    # Keys that are given may be those of the old files alone.
    sealing = wanted.kms_client() if wanted.kms else opening
    if sealing is None or isinstance(sealing, ExplicitKeys):
        raise PolicyError(
            "there is no KMS to wrap new keys", hint="add [kms] to the policy, or give a keyring"
        )
    check_master_keys(wanted, sealing)
    return Reencryption(
        # The policy is no requirement for the old files: they need not be as the new policy says.
        resolver=KeyResolver(asked_once(opening)),
        policy=wanted,
        maker=KeyMaker(sealing, wanted.encryption),
        new_data_keys=new_data_keys,
        dry_run=dry_run,
        only_changes=only_changes,
    )


def decryption(
    policy: GivenPolicy, keys: GivenKeys, *, allow_unverified: bool, allow_unprotected: bool
) -> Reencryption:
    """The work of :func:`.run.decrypt` on one file."""
    trust = trust_of(policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected)
    return Reencryption(resolver=resolver_of(keys, trust), policy=None, maker=None)


def rotation(
    policy: KeyPolicy | str | PathLike[str],
    moves: Mapping[str, str],
    keys: GivenKeys,
    *,
    dry_run: bool = False,
) -> Rotation:
    """The work of :func:`.run.rotate_keys` on one file; errors as of that."""
    wanted = loaded_policy(policy)
    kms = keys_of(keys, wanted)
    if kms is None or isinstance(kms, ExplicitKeys) or wanted is None:
        raise PolicyError("there is no KMS", hint="add [kms] to the policy, or give a keyring")
    _check_moves(moves, kms)
    if not moves:
        check_master_keys(wanted, kms)
    # One KMS in two forms: what unwraps each key once cannot renew keys, nor move them.
    opening = kms if isinstance(kms, Keyring) else UnwrapsOnce(kms)
    return Rotation(
        resolver=KeyResolver(opening),
        rewrapper=Rewrapper(kms, moves, opening),
        policy=wanted,
        dry_run=dry_run,
    )


def _check_moves(moves: Mapping[str, str], kms: KmsClient) -> None:
    chained = sorted(moves.keys() & set(moves.values()))
    # In a run that was cut short, a key that was moved to could not be told from one to be moved.
    if chained:
        raise PolicyError(
            f"keys are to be left and to be moved to at once: {', '.join(chained)}",
            hint="a run that was cut short could not be resumed: rotate twice, the last move first",
        )
    # A client that cannot say which keys it has is asked by the first file.
    unknown = sorted(
        name
        for name in {*moves, *moves.values()}
        if isinstance(kms, KeyInventory) and not kms.has_key(name)
    )
    if unknown:
        raise PolicyError(f"the KMS does not have master keys {', '.join(unknown)}")
