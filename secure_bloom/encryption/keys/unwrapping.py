"""A KMS that is asked once for each wrapped key during a run, by whoever wants it.

A reader and pyarrow both unwrap the keys of a file, and the files of a table share their KEKs.
"""

from __future__ import annotations

from secure_bloom.encryption.keys.client import KeyInventory, KmsClient, unwrap_with
from secure_bloom.encryption.keys.explicit import ExplicitKeys
from secure_bloom.encryption.keys.kek_cache import KekCache
from secure_bloom.encryption.keys.keyring import Keyring


class UnwrapsOnce:
    """Keeps what it unwrapped for as long as it lives, of very many keys the last ones.

    A key that is refused is asked for again: the refusal may be of the moment.
    """

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._unwrapped = KekCache()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key, asked for once."""
        return self._unwrapped.get(
            (b"", master_key_identifier, wrapped_key),
            # Through the door, so that a failure names the client that failed.
            lambda: unwrap_with(self._kms, wrapped_key, master_key_identifier),
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """As the other client wraps it."""
        return self._kms.wrap_key(key_bytes, master_key_identifier)

    def has_key(self, master_key_id: str) -> bool:
        """What the other one says; one without an inventory finds out by unwrapping."""
        return not isinstance(self._kms, KeyInventory) or self._kms.has_key(master_key_id)


def asked_once(
    keys: Keyring | KmsClient | ExplicitKeys | None,
) -> Keyring | KmsClient | ExplicitKeys | None:
    """``keys``, a KMS among them behind :class:`UnwrapsOnce`; a keyring is at hand anyway."""
    if isinstance(keys, Keyring | UnwrapsOnce) or not isinstance(keys, KmsClient):
        return keys
    return UnwrapsOnce(keys)
