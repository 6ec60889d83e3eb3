"""Wrapping data encryption keys (DEK) into key material, once or twice, and unwrapping them.

Once, the KMS wraps the DEK itself.  Twice is the ecosystem's default: a writer makes one key
encryption key (KEK) per master key, asks the KMS to wrap only that, and wraps every DEK itself.
One call to the KMS then serves many files.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.encryption.file_keys.material import KEK_ID_SIZE, KeyMaterial, WrappedKek
from secure_bloom.encryption.file_keys.unwrapped_keys import KekCache
from secure_bloom.encryption.kms.client import KmsClient, misfit, unwrap_with, wrap_with
from secure_bloom.errors import FormatError, IntegrityError

#: parquet-java and pyarrow write this where no KMS instance is configured.
_DEFAULT_INSTANCE = "DEFAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEncryptionKey:
    """A KEK in clear and as the KMS wrapped it."""

    key: bytes = field(repr=False)
    master_key_id: str
    wrapped: WrappedKek

    @classmethod
    def create(cls, kms: KmsClient, master_key_id: str, *, size: int = 16) -> KeyEncryptionKey:
        """Return a new random KEK of ``size`` bytes; one call to the KMS."""
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
    """Return single wrapping: one call to the KMS for this DEK.

    KeyUnavailableError when it refuses.
    """
    wrapped_dek = wrap_with(kms, dek, master_key_id)
    return _material(wrapped_dek, master_key_id, None, is_footer_key=is_footer_key)


def wrap_twice(dek: bytes, kek: KeyEncryptionKey, *, is_footer_key: bool = False) -> KeyMaterial:
    """Double wrapping: the DEK under ``kek``, without a call to the KMS."""
    check_key_size(dek)
    # The KEK's id is the AAD, as in parquet-java and pyarrow: with another id the tag fails.
    # One KEK wraps the keys of many files.  That is safe because `seal` draws a nonce for each.
    sealed = cipher.seal(dek, kek.key, kek.wrapped.kek_id)
    wrapped_dek = base64.b64encode(sealed).decode("ascii")
    return _material(wrapped_dek, kek.master_key_id, kek.wrapped, is_footer_key=is_footer_key)


def unwrap(material: KeyMaterial, kms: KmsClient, keks: KekCache) -> bytes:
    """Return the DEK in ``material``; ``keks`` keeps what the KMS unwrapped, for whoever asks next.

    Raises KeyUnavailableError when the KMS refuses or a key does not fit, FormatError for a wrapped
    key that is malformed.
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
