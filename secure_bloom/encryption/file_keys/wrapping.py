"""Wrap data encryption keys (DEK) into key material, once or twice, and unwrap them.

Single wrapping: the KMS wraps the DEK itself.  Double wrapping is the ecosystem's default: a writer
makes one key encryption key (KEK) per master key, asks the KMS to wrap only the KEK, and wraps
every DEK under the KEK itself.  One call to the KMS then serves many files.

Unwrapped keys are kept in a :class:`KekCache`, so that all threads together ask the KMS once for
each key.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.encryption.file_keys.material import KEK_ID_SIZE, KeyMaterial, WrappedKek
from secure_bloom.encryption.kms.client import (
    KeyInventory,
    KmsClient,
    misfit,
    unwrap_with,
    wrap_with,
)
from secure_bloom.encryption.kms.keyring import ExplicitKeys, Keyring
from secure_bloom.errors import FormatError, IntegrityError

#: A file's description of a KEK: its id (if it has one), the master key's id, the wrapped bytes.
#: The cache compares all of it.  Any file can claim any id, so with the id alone a hostile file
#: could put its own KEK in the place of another file's.
KekId = tuple[bytes, str, str]
#: Most KEKs to keep.  A table has fewer, unless the KMS itself wrapped one key for each column of
#: each file: then the oldest are forgotten.
_MOST = 10_000


class KekCache:
    """Unwrapped KEKs that serve many files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[KekId, _Slot] = {}
        #: The number of keys that were unwrapped: of calls that the KMS answered.
        self.unwrapped = 0

    def get(self, kek_id: KekId, unwrap: Callable[[], bytes]) -> bytes:
        """Return the KEK.

        The first caller unwraps it, and other callers who want the same KEK wait. An error of
        ``unwrap`` is raised to the caller who made the call. The next caller tries again.
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
    """One KEK. Its lock is held during the call to the KMS, so calls for other KEKs go on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kek: bytes | None = None


class UnwrapsOnce:
    """A KMS client that keeps the latest keys that it unwrapped, up to a fixed number.

    A refusal is not kept, because the KMS may answer the next time.
    """

    def __init__(self, kms: KmsClient) -> None:
        self._kms = kms
        self._unwrapped = KekCache()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the unwrapped key. The other client is asked only the first time."""
        return self._unwrapped.get(
            # Whether a KEK or a DEK is inside is unknown here; the texts of the wrapped
            # keys differ.
            (b"", master_key_identifier, wrapped_key),
            # unwrap_with, so that an error names the other client and not this one.
            lambda: unwrap_with(self._kms, wrapped_key, master_key_identifier),
        )

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Return the key as the other client wraps it."""
        return self._kms.wrap_key(key_bytes, master_key_identifier)

    def has_key(self, master_key_id: str) -> bool:
        """Return whether the other client has the master key. True for a client that cannot say."""
        return not isinstance(self._kms, KeyInventory) or self._kms.has_key(master_key_id)


def asked_once(
    keys: Keyring | KmsClient | ExplicitKeys | None,
) -> Keyring | KmsClient | ExplicitKeys | None:
    """Return ``keys``. A KMS client is wrapped in :class:`UnwrapsOnce`.

    A keyring is returned unchanged, because it unwraps in this process, without a call.
    """
    # Wrapped once is enough: verbs hand their clients on to each other.
    if isinstance(keys, Keyring | UnwrapsOnce) or not isinstance(keys, KmsClient):
        return keys
    return UnwrapsOnce(keys)


#: parquet-java and pyarrow write this where no KMS instance is configured.
_DEFAULT_INSTANCE = "DEFAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEncryptionKey:
    """A KEK in clear, and the same KEK as the KMS wrapped it."""

    key: bytes = field(repr=False)
    master_key_id: str
    wrapped: WrappedKek

    @classmethod
    def create(cls, kms: KmsClient, master_key_id: str, *, size: int = 16) -> KeyEncryptionKey:
        """Return a new random KEK of ``size`` bytes. Makes one call to the KMS."""
        key = os.urandom(size)
        wrapped = wrap_with(kms, key, master_key_id)
        return cls(
            key=key,
            master_key_id=master_key_id,
            # The id is random and not made from the key, because files show it in clear.
            wrapped=WrappedKek(kek_id=os.urandom(KEK_ID_SIZE), wrapped=wrapped),
        )


def wrap_once(
    dek: bytes, kms: KmsClient, master_key_id: str, *, is_footer_key: bool = False
) -> KeyMaterial:
    """Return the key material of a DEK that the KMS wraps itself, with one call.

    Raises KeyUnavailableError when the KMS refuses.
    """
    wrapped_dek = wrap_with(kms, dek, master_key_id)
    return _material(wrapped_dek, master_key_id, None, is_footer_key=is_footer_key)


def wrap_twice(dek: bytes, kek: KeyEncryptionKey, *, is_footer_key: bool = False) -> KeyMaterial:
    """Return the key material of a DEK wrapped under ``kek``, without a call to the KMS."""
    check_key_size(dek)
    # The KEK's id is the AAD, as in parquet-java and pyarrow: with another id the tag fails.
    # One KEK wraps the keys of many files.  That is safe because `seal` draws a nonce for each.
    sealed = cipher.seal(dek, kek.key, kek.wrapped.kek_id)
    wrapped_dek = base64.b64encode(sealed).decode("ascii")
    return _material(wrapped_dek, kek.master_key_id, kek.wrapped, is_footer_key=is_footer_key)


def unwrap(material: KeyMaterial, kms: KmsClient, keks: KekCache) -> bytes:
    """Return the DEK in ``material``. ``keks`` keeps the unwrapped KEK for the next file.

    Raises KeyUnavailableError when the KMS refuses or a key does not fit, FormatError for a
    malformed wrapped key.
    """
    kek, master_key_id = material.kek, material.master_key_id
    if kek is None:
        return keks.get(
            # An id of a KEK has 16 bytes, so no KEK of a file can be found under the empty one.
            (b"", master_key_id, material.wrapped_dek),
            lambda: unwrap_with(kms, material.wrapped_dek, master_key_id),
        )
    # The key itself is in no variable, because tools that report errors show those.
    prepared = cipher.prepare(
        keks.get(
            (kek.kek_id, master_key_id, kek.wrapped),
            lambda: unwrap_with(kms, kek.wrapped, master_key_id),
        )
    )
    try:
        dek = cipher.unseal(_sealed_dek(material), prepared, kek.kek_id)
    except IntegrityError as exc:
        raise misfit(master_key_id) from exc
    # It authenticated, but a foreign writer may have wrapped anything.
    check_key_size(dek)
    return dek


def _sealed_dek(material: KeyMaterial) -> bytes:
    try:
        return base64.b64decode(material.wrapped_dek, validate=True)
    except ValueError as exc:
        raise FormatError("wrappedDEK of the key material is not base64") from exc


def _material(
    wrapped_dek: str, master_key_id: str, kek: WrappedKek | None, *, is_footer_key: bool
) -> KeyMaterial:
    # parquet-java opens a file without a configured KMS instance only if the footer names one.
    instance = _DEFAULT_INSTANCE if is_footer_key else None
    return KeyMaterial(
        is_footer_key=is_footer_key,
        master_key_id=master_key_id,
        wrapped_dek=wrapped_dek,
        kek=kek,
        kms_instance_id=instance,
        kms_instance_url=instance,
    )
