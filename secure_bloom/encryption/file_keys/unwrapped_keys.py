"""Keys that were unwrapped, kept: one call to the KMS for each, for all threads together.

The files of a table share key encryption keys (KEK), so a run keeps those.  A client that unwraps
each key once serves pyarrow too, which unwraps the keys of a file a second time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from secure_bloom.encryption.kms.client import KeyInventory, KmsClient, unwrap_with
from secure_bloom.encryption.kms.explicit import ExplicitKeys
from secure_bloom.encryption.kms.keyring import Keyring

#: A file's description of a KEK: its id (if it has one), the master key's id, the wrapped bytes.
#: The cache compares all of it.  Any file can claim any id, so with the id alone a hostile file
#: could put its own KEK in the place of another file's.
KekId = tuple[bytes, str, str]


#: Most KEKs to keep.  A table has fewer, unless the KMS itself wrapped one key for each column of
#: each file: then the oldest are forgotten.
_MOST = 10_000


class KekCache:
    """Unwrapped keys that serve many files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[KekId, _Slot] = {}
        #: The number of keys that were unwrapped: of calls that the KMS answered.
        self.unwrapped = 0

    def get(self, kek_id: KekId, unwrap: Callable[[], bytes]) -> bytes:
        """Return the KEK.  The first caller unwraps it.

        Others who want the same one wait for that call.
        An error of ``unwrap`` goes to the caller who made the call; the next one tries again.
        """
        with self._lock:
            slot = self._slots.setdefault(kek_id, _Slot())
            # A dict keeps its order, so the first is the oldest.  A thread that waits for it holds
            # its slot and is not disturbed.
            if len(self._slots) > _MOST:
                del self._slots[next(iter(self._slots))]
        with slot.lock:
            # A failure is not kept: a KMS that throttled one call may answer the next one.
            if slot.kek is None:
                slot.kek = unwrap()
                with self._lock:
                    self.unwrapped += 1
            return slot.kek


class _Slot:
    """One KEK.  Its lock is held during the call to the KMS, so calls for other KEKs go on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kek: bytes | None = None


class UnwrapsOnce:
    """Keeps the keys that it unwrapped as long as it lives; of very many keys, the latest.

    A refusal is not kept, because the KMS may answer the next time.
    """

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._unwrapped = KekCache()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key, asked for once."""
        return self._unwrapped.get(
            # Whether a KEK or a DEK is inside is unknown here; the text of the wrapped key tells
            # them apart.
            (b"", master_key_identifier, wrapped_key),
            # unwrap_with, so that an error names the other client and not this one.
            lambda: unwrap_with(self._kms, wrapped_key, master_key_identifier),
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return the key as the other client wraps it."""
        return self._kms.wrap_key(key_bytes, master_key_identifier)

    def has_key(self, master_key_id: str) -> bool:
        """Return whether the other client has the master key.

        One without an inventory may have any.
        """
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
