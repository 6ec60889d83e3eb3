"""The access of a run: whose keys it uses, which policy files must obey, which files it accepts.

    access = Access.of(keys, policy, allow_unprotected=True)
    resolver = access.resolver()  # opens files; a KMS is asked once for each wrapped key
    trust = access.trust()  # what files must fulfil

The record is sent to the other processes of a run, and each of them makes its own clients.  On
Spark it is sent without keys: executors ask the policy's KMS themselves.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Final, TypeAlias

from secure_bloom.calling.close_names import CloseNames, differ_by_number
from secure_bloom.encryption.file_keys import KeyResolver, asked_once
from secure_bloom.encryption.kms import ExplicitKeys, KeyInventory, Keyring, KmsClient
from secure_bloom.encryption.trust import Trust
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import shell_word

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

#: Two names in use with at least this likeness may be one name, misspelt.
_ALIKE: Final = 0.85

GivenKeys: TypeAlias = Keyring | KmsClient | ExplicitKeys | None
GivenPolicy: TypeAlias = "KeyPolicy | str | PathLike[str] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The keys of a run, the policy of its files, and which violations of it are accepted.

    Without ``keys`` the policy's KMS is asked.  With a policy, a KMS is asked only for master keys
    that the policy names, unless ``allow_unprotected`` is given.  The record can be pickled if its
    keys can.
    """

    keys: GivenKeys = field(default=None, repr=False)
    policy: KeyPolicy | None = None
    allow_unverified: bool = False
    allow_unprotected: bool = False

    @classmethod
    def of(
        cls,
        keys: GivenKeys,
        policy: GivenPolicy,
        *,
        allow_unverified: bool = False,
        allow_unprotected: bool = False,
        paths: Iterable[str] = (),
    ) -> Access:
        """Return the access for a caller's arguments. Raises PolicyError for an invalid policy.

        If the policy has several tables and all ``paths`` are in one of them, the access uses the
        policy of that table.
        """
        return cls(
            keys=keys,
            policy=loaded_policy(policy, paths),
            allow_unverified=allow_unverified,
            allow_unprotected=allow_unprotected,
        )

    def trust(self) -> Trust:
        """Return the requirements that files must meet."""
        return Trust(
            policy=self.policy,
            allow_unverified=self.allow_unverified,
            allow_unprotected=self.allow_unprotected,
        )

    def resolver(self) -> KeyResolver:
        """Return the resolver that finds the keys of files."""
        return KeyResolver(asked_once(self.key_source()), self.trust())

    def checked_resolver(self) -> KeyResolver:
        """Return :meth:`resolver`.

        Raises PolicyError if the KMS lacks a master key of the policy.
        """
        source = self.required_key_source()
        if self.policy is not None and isinstance(source, KmsClient):
            check_master_keys(self.policy, source)
        return KeyResolver(asked_once(source), self.trust())

    def describing_resolver(self) -> KeyResolver:
        """Return a resolver for files that are only described, whatever protects them."""
        return KeyResolver(asked_once(self.key_source()))

    def key_source(self, *, also: Collection[str] = (), way_out: str | None = None) -> GivenKeys:
        """Return the given keys, else the policy's KMS, else None.

        ``also`` are master keys that a KMS may be asked for besides the keys of the policy.
        ``way_out`` ends the hint of the error about a key that may not be asked for.
        """
        keys, policy = self.keys, self.policy
        # Keys that are given win: whoever gives some may have no way to the policy's KMS.
        if keys is None and policy is not None and policy.kms:
            keys = policy.unguarded_kms_client()
        if policy is None or self.allow_unprotected or not isinstance(keys, KmsClient):
            return keys
        hint = {} if way_out is None else {"way_out": way_out}
        return policy.guarded(keys, also=also, **hint)

    def required_key_source(self) -> GivenKeys:
        """Return :meth:`key_source`. Raises PolicyError for a policy that names keys but no KMS."""
        policy = self.policy
        if self.keys is None and policy is not None and policy.master_keys() and not policy.kms:
            policy.kms_client()
        return self.key_source()


def loaded_policy(policy: GivenPolicy, paths: Iterable[str] = ()) -> KeyPolicy | None:
    """Return the policy itself, or the policy in the file at a path.

    If the policy has several tables and all ``paths`` are in one of them, the policy of that
    table is returned. Raises PolicyError for any other argument.
    """
    if policy is None:
        return None
    # Imported here: most probes have no policy.
    from secure_bloom.encryption.policy import KeyPolicy

    if isinstance(policy, str | PathLike):
        policy = KeyPolicy.load(policy)
    if not isinstance(policy, KeyPolicy):
        raise PolicyError(
            f"policy is of type {type(policy).__name__}, wanted a KeyPolicy or the path of one"
        )
    return policy.for_paths(paths)


def check_master_keys(policy: KeyPolicy, kms: KmsClient) -> None:
    """Raise PolicyError if ``kms`` knows that it lacks a master key of the policy.

    A client without ``has_key`` is not asked. With such clients, a missing key is noticed when a
    key is first unwrapped.
    """
    if not isinstance(kms, KeyInventory):
        return
    unknown = sorted(name for name in policy.master_keys() if not kms.has_key(name))
    if unknown:
        raise PolicyError(
            f"the policy names master keys that its KMS does not have: {', '.join(unknown)}",
            hint=lacking_keys_hint(unknown, kms, policy),
        )


def lacking_keys_hint(names: Iterable[str], kms: KmsClient, policy: KeyPolicy | None) -> str:
    """Return the hint for master keys that ``kms`` lacks: which are misspelt, how to make others.

    A name counts as misspelt if ``kms`` has a key with a similar name that the policy does not
    name. If the policy names the similar key, the name may be misspelt or new. Names that differ
    only by numbers, such as those of years, do not count as similar.
    """
    if not isinstance(kms, Keyring):
        # Other clients can say whether they have a key, and not which ones.
        return "make the keys in the KMS, or correct their names"
    named = frozenset[str]() if policy is None else policy.named_keys()
    others, hints, new = CloseNames(kms.master_keys.keys() - named), [], []
    for name in names:
        close = [it for it in others.close(name, 3) if not differ_by_number(it, name)]
        used = CloseNames(kms.master_keys).close(name, 3, _ALIKE)
        alike = close or [it for it in used if not differ_by_number(it, name)]
        if alike:
            hints.append(f"{name}: did you mean {alike[0]!r}?")
        if not close:
            new.append(f"--add {shell_word(name)}")
    if new:
        path = None if policy is None else policy.keyring_path()
        file = "keyring.json" if path is None else shell_word(os.fspath(path))
        hints.append(f"to make new keys: secure-bloom keys new {file} {' '.join(new)}")
    return "; ".join(hints)
