"""Keys of files on their way from one KMS to another, or from one keyring to another.

    kms = TwoKms(old, new)
    key = kms.unwrap_key(wrapped, name)     the new KMS is asked first, then the old one
    kms.is_old(wrapped, name)               whether the old one opened it: the file is to be changed

A master key may have one name in both.  Only the KMS that opens a wrapped key shows whose it is.
"""

from __future__ import annotations

from secure_bloom.encryption.access import GivenKeys
from secure_bloom.encryption.file_keys import KeyMaterial, UnwrapsOnce
from secure_bloom.encryption.kms import KeyNotNamedError, KmsClient, unwrap_with, wrap_with
from secure_bloom.errors import FormatError, KeyUnavailableError


class TwoKms:
    """A :class:`~secure_bloom.KmsClient` that unwraps by two others, and wraps by the new one.

    Each wrapped key is asked for once; safe for threads.
    """

    def __init__(self, old: KmsClient, new: KmsClient) -> None:
        self._old, self._new = UnwrapsOnce(old), UnwrapsOnce(new)
        self._old_keys: set[tuple[str, str]] = set()

    @classmethod
    def of(cls, old: GivenKeys, new: KmsClient) -> TwoKms | None:
        """Return both as one client; None if ``old`` is no KMS, or the same keyring as ``new``."""
        return cls(old, new) if isinstance(old, KmsClient) and old != new else None

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` as the new KMS wraps it."""
        return wrap_with(self._new, key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """Return the key as the new KMS unwraps it, else as the old one does."""
        if (wrapped_key, master_key_identifier) in self._old_keys:
            return unwrap_with(self._old, wrapped_key, master_key_identifier)
        try:
            return unwrap_with(self._new, wrapped_key, master_key_identifier)
        except (FormatError, KeyUnavailableError) as refusal:
            key = self._by_old(wrapped_key, master_key_identifier, refusal)
        self._old_keys.add((wrapped_key, master_key_identifier))
        return key

    def is_old(self, wrapped_key: str, master_key_identifier: str) -> bool:
        """Return whether the old KMS has wrapped this key; raises where neither opens it."""
        self.unwrap_key(wrapped_key, master_key_identifier)
        return (wrapped_key, master_key_identifier) in self._old_keys

    def has_old(self, material: KeyMaterial) -> bool:
        """Return whether the key material is wrapped by the old KMS."""
        wrapped = material.wrapped_dek if material.kek is None else material.kek.wrapped
        return self.is_old(wrapped, material.master_key_id)

    def _by_old(self, wrapped_key: str, name: str, refusal: Exception) -> bytes:
        try:
            return unwrap_with(self._old, wrapped_key, name)
        except KeyNotNamedError:
            # The key is one of the new policy alone, so the new KMS says what is wrong with it.
            raise refusal from None
