"""Make the work of a run on one file from a caller's arguments: here, in processes, on Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from secure_bloom.encryption.access import (
    Access,
    GivenKeys,
    GivenPolicy,
    check_master_keys,
    lacking_keys_hint,
    loaded_policy,
)
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.file_keys import KeyResolver, UnwrapsOnce, asked_once, explicit_keys
from secure_bloom.encryption.kms import ExplicitKeys, KeyInventory, Keyring, KmsClient
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.rekeying.new_keys import KeyMaker, Rewrapper, TwoKms
from secure_bloom.rekeying.reencryption import Reencryption
from secure_bloom.rekeying.rekey_report import RekeyedFile
from secure_bloom.rekeying.rotation import Rotation
from secure_bloom.reports.text import counted
from secure_bloom.storage.column_mapping import ColumnMapping

#: The end of a hint about a key that no policy names.
_WAY_OUT = (
    "to bring files from there under this policy: --old-policy FILE, or old_policy=, the policy "
    "that names the key"
)


def reencryption(
    policy: GivenPolicy,
    keys: GivenKeys,
    *,
    old_policy: GivenPolicy = None,
    new_data_keys: bool = False,
    dry_run: bool = False,
    only_changes: bool = False,
    verify: bool = False,
    names: ColumnMapping | None = None,
    needs_columns: bool = False,
) -> Reencryption:
    """Return the work of :func:`.api.rekey.reencrypt` on one file.

    ``names`` are the table's column names.  With ``needs_columns``, some file of the run must
    have each column with a key.  Raises the errors of that function.
    """
    wanted = loaded_policy(policy)
    # Without a [footer] no column can have a key either, so files would come out in clear, in their
    # place.
    if wanted is None or wanted.footer_key is None:
        raise PolicyError(
            "the policy encrypts nothing: it has no [footer]",
            hint="to write files in clear: decrypt",
        )
    # Keys that are given may be those of the old files alone.
    sealing = _kms(wanted, None if wanted.kms else keys)
    if sealing is None or isinstance(sealing, ExplicitKeys):
        raise PolicyError(
            "there is no KMS to wrap new keys", hint="add [kms] to the policy, or give a keyring"
        )
    check_master_keys(wanted, sealing)
    older = _older_keys(keys, loaded_policy(old_policy), wanted)
    two_kms = TwoKms.of(older, sealing)
    return Reencryption(
        # The policy is no requirement for the old files: they need not be as the new policy says.
        resolver=_resolver(older, two_kms, asked_once(sealing)),
        two_kms=two_kms,
        policy=wanted,
        maker=KeyMaker(sealing, wanted.encryption),
        new_data_keys=new_data_keys,
        dry_run=dry_run,
        only_changes=only_changes,
        verify=verify,
        names=names,
        needs_columns=needs_columns,
    )


def decryption(
    access: Access,
    *,
    dry_run: bool = False,
    only_changes: bool = False,
    verify: bool = False,
    names: ColumnMapping | None = None,
) -> Reencryption:
    """Return the work of :func:`.api.rekey.decrypt` on one file.

    ``names`` are the table's column names.
    """
    return Reencryption(
        resolver=access.resolver(),
        policy=None,
        maker=None,
        dry_run=dry_run,
        only_changes=only_changes,
        verify=verify,
        names=names,
    )


def rotation(
    policy: GivenPolicy,
    moves: Mapping[str, str],
    keys: GivenKeys,
    *,
    old_policy: GivenPolicy = None,
    dry_run: bool = False,
    verify: bool = False,
    names: ColumnMapping | None = None,
    needs_columns: bool = False,
) -> Rotation:
    """Return the work of :func:`.api.rekey.rotate_keys` on one file.

    ``names`` are the table's column names.  With ``needs_columns``, some file of the run must
    have each column with a key.  Raises the errors of that function.
    """
    wanted, old = loaded_policy(policy), loaded_policy(old_policy)
    if moves and old is not None:
        raise PolicyError(
            "an old policy and moves of keys exclude each other: both say which keys files "
            "have now",
            hint="with an old policy, leave the moves out (--from, --to): files get the keys "
            "of the new policy",
        )
    # With an old policy, keys that are given are those of the old files.
    own = keys if old is None else None
    kms = None if wanted is None else _kms(wanted, own, also={*moves, *moves.values()})
    if kms is None or isinstance(kms, ExplicitKeys) or wanted is None:
        raise PolicyError("there is no KMS", hint="add [kms] to the policy, or give a keyring")
    _check_moves(moves, kms, wanted)
    if not moves:
        check_master_keys(wanted, kms)
    # One KMS in two forms: what unwraps each key once cannot renew keys, nor move them.
    opening = kms if isinstance(kms, Keyring) else UnwrapsOnce(kms)
    older = None if old is None else _older_keys(keys, old, wanted)
    two_kms = TwoKms.of(older, kms)
    return Rotation(
        resolver=_resolver(older, two_kms, opening),
        rewrapper=Rewrapper(kms, moves, opening, two_kms),
        policy=wanted,
        dry_run=dry_run,
        verify=verify,
        names=names,
        needs_columns=needs_columns,
    )


def _kms(policy: KeyPolicy, keys: GivenKeys, *, also: Collection[str] = ()) -> GivenKeys:
    """Return the given keys, or the policy's KMS, which is asked for the policy's keys alone.

    ``also`` are other master keys that it may be asked for.
    """
    return Access(keys=keys, policy=policy).key_source(also=also, way_out=_WAY_OUT)


def _older_keys(keys: GivenKeys, old: KeyPolicy | None, wanted: KeyPolicy) -> GivenKeys:
    """Return the keys or KMS for old files, or None if the KMS of the new files serves them too."""
    if old is None:
        return None if keys is None or not wanted.kms else _kms(wanted, keys)
    found = _kms(old, keys)
    if found is None:
        raise PolicyError("the old policy has no [kms]", hint="add it, or give a keyring")
    return found


def _resolver(older: GivenKeys, two_kms: TwoKms | None, new: GivenKeys) -> KeyResolver:
    """Return a resolver for old files: it asks both KMSs, and also uses the given data keys."""
    if two_kms is not None:
        return KeyResolver(two_kms, explicit=explicit_keys(older))
    return KeyResolver(older if isinstance(older, ExplicitKeys) else new)


def _check_moves(moves: Mapping[str, str], kms: KmsClient, policy: KeyPolicy | None) -> None:
    chained = sorted(moves.keys() & set(moves.values()))
    # In a run that was cut short, a key that was moved to would look like one to be moved.
    if chained:
        raise PolicyError(
            f"each of these keys is the old key of one move and the new key of another: "
            f"{', '.join(chained)}",
            hint="an interrupted run could not be resumed; run rotate once for each move, the "
            "last one first",
        )
    # A client that cannot say which keys it has is asked by the first file.
    unknown = sorted(
        name
        for name in {*moves, *moves.values()}
        if isinstance(kms, KeyInventory) and not kms.has_key(name)
    )
    if unknown:
        # Without the old key nothing is moved, and a new key of its name opens no file.
        old = sorted(moves.keys() & set(unknown))
        known = kms.master_keys if isinstance(kms, Keyring) else ()
        raise PolicyError(
            f"the KMS does not have master keys {', '.join(unknown)}",
            hint=f"files leave {old[0]}, so it must be there: {close_match(old[0], known)}"
            if old
            else lacking_keys_hint(unknown, kms, policy),
        )


def closed_notes(moves: Mapping[str, str], reports: Iterable[RekeyedFile]) -> Iterator[str]:
    """Yield a note on files whose footers were not opened, so that the policy was not checked.

    ``moves`` are the moves of a rotation. With moves, no policy is checked.
    """
    closed = sum(report.footer is not None and not report.columns for report in reports)
    if closed and not moves:
        yield (
            f"{counted(closed, 'file')}: footers were not opened, because their keys are stored "
            "outside; which columns are encrypted was not checked: secure-bloom audit checks it"
        )
