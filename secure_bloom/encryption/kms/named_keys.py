"""A KMS client that is asked only for the master keys that a policy names.

A file says which master key wrapped its keys, and anybody can write a file: one under a master key
of another account opens wherever the caller's rights reach, and its rows are forged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol, runtime_checkable

from secure_bloom.encryption.kms.client import (
    KmsClient,
    moved_with,
    rewrap_with,
    unwrap_with,
    wrap_with,
)
from secure_bloom.errors import KeyUnavailableError

#: The methods that a client may have, beside those of every client.
_OPTIONAL: Final = ("has_key", "rewrap_key", "move_key", "key_version")


class KeyNotNamedError(KeyUnavailableError):
    """A file names a master key that the policy does not name, so the KMS was not asked for it."""


@runtime_checkable
class KeySpelling(Protocol):
    """A KMS client that knows several spellings of one master key's id."""

    def canonical_id(self, master_key_id: str) -> str:
        """Return the same text for all spellings of one master key; no call to the KMS."""


class NamedKeys:
    """Another KMS client, asked for the master keys ``names`` alone.

    It has those optional methods (:class:`~.client.KeyInventory` and the like) that the other
    client has.  Each raises KeyNotNamedError for any other key; ``way_out`` ends its hint.
    """

    def __init__(self, kms: KmsClient, names: Collection[str], *, way_out: str) -> None:
        self._kms: Any = kms
        self._way_out = way_out
        self._canonical: Callable[[str], str] = (
            kms.canonical_id if isinstance(kms, KeySpelling) else str
        )
        self._names = frozenset(map(self._canonical, names))
        # As attributes of the instance: isinstance of a protocol looks for the methods there too.
        for method in _OPTIONAL:
            if hasattr(kms, method):
                setattr(self, method, getattr(self, f"_{method}"))

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` as the other client wraps it."""
        self._check(master_key_identifier)
        return wrap_with(self._kms, key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key as the other client unwraps it."""
        self._check(master_key_identifier)
        return unwrap_with(self._kms, wrapped_key, master_key_identifier)

    def _has_key(self, master_key_id: str) -> bool:
        self._check(master_key_id)
        return bool(self._kms.has_key(master_key_id))

    def _rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        self._check(master_key_identifier)
        return rewrap_with(self._kms, wrapped_key, master_key_identifier)

    def _move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        self._check(old_master_key)
        self._check(new_master_key)
        return moved_with(self._kms, wrapped_key, old_master_key, new_master_key)

    def _key_version(self, wrapped_key: str) -> str:
        return str(self._kms.key_version(wrapped_key))

    def _check(self, name: str) -> None:
        if self._canonical(name) not in self._names:
            raise KeyNotNamedError(
                f"the policy does not name master key {name!r}, so no KMS was asked for it",
                hint=f"if the key is yours, add [keys.{json.dumps(name, ensure_ascii=False)}] to "
                f"the policy; else the file was written by somebody else; {self._way_out}",
            )
