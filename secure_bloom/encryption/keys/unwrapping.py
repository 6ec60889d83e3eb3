"""A KMS client that asks another one, once for each wrapped key of a run.

Our reader and pyarrow both unwrap the keys of a file, and the files of a table share their KEKs.
"""

from __future__ import annotations

from secure_bloom.encryption.keys.client import KeyInventory, KmsClient, unwrap_with
from secure_bloom.encryption.keys.explicit import ExplicitKeys
from secure_bloom.encryption.keys.keyring import Keyring
from secure_bloom.encryption.keys.wrapping import KekCache


class UnwrapsOnce:
    """Keeps the keys that it unwrapped as long as it lives; of very many keys, the latest.

    A refusal is not kept, because the KMS may answer the next time.
    """

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._unwrapped = KekCache()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key, asked for once."""
        return self._unwrapped.get(
            # Whether a KEK or a DEK is inside is unknown here; the text of the wrapped key tells
            # them apart.
            (b"", master_key_identifier, wrapped_key),
            # unwrap_with, so that an error names the other client and not this one.
            lambda: unwrap_with(self._kms, wrapped_key, master_key_identifier),
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """The key as the other client wraps it."""
        return self._kms.wrap_key(key_bytes, master_key_identifier)

    def has_key(self, master_key_id: str) -> bool:
        """Whether the other client has the master key; one without an inventory may have any."""
        return not isinstance(self._kms, KeyInventory) or self._kms.has_key(master_key_id)


def asked_once(
    keys: Keyring | KmsClient | ExplicitKeys | None,
) -> Keyring | KmsClient | ExplicitKeys | None:
    """``keys``, with a KMS wrapped in :class:`UnwrapsOnce`.

    A keyring is given back as it is: unwrapping with it is a computation in this process.
    """
    # Wrapped once is enough: verbs hand their clients on to each other.
    if isinstance(keys, Keyring | UnwrapsOnce) or not isinstance(keys, KmsClient):
        return keys
    return UnwrapsOnce(keys)
