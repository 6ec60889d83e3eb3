"""A KMS client that asks another one once for each wrapped key."""

from __future__ import annotations

from secure_bloom.keys import KeyInventory, KmsClient
from secure_bloom.keys.kek_cache import KekCache


class UnwrapsOnce:
    """Keeps what it unwrapped for as long as it lives: the files of a table share their KEKs."""

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._unwrapped = KekCache()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key, asked for once."""
        return self._unwrapped.get(
            (wrapped_key.encode(), master_key_identifier),
            lambda: self._kms.unwrap_key(wrapped_key, master_key_identifier),
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """As the other client wraps it."""
        return self._kms.wrap_key(key_bytes, master_key_identifier)

    def has_key(self, master_key_id: str) -> bool:
        """What the other one says; one without an inventory finds out by unwrapping."""
        return not isinstance(self._kms, KeyInventory) or self._kms.has_key(master_key_id)
