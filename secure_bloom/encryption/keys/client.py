"""The KMS interface of the Parquet ecosystem, and the one door through which a KMS is asked."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from secure_bloom.encryption.cipher import check_key_size
from secure_bloom.errors import FormatError, IntegrityError, KeyUnavailableError


@runtime_checkable
class KmsClient(Protocol):
    """Wraps and unwraps keys under master keys that stay inside the KMS.

    The methods are those of ``pyarrow.parquet.encryption.KmsClient``: its objects fit unchanged.
    One client serves several threads.
    """

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` encrypted under the master key, as text."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped."""


@runtime_checkable
class KeyInventory(Protocol):
    """A KMS client that can say, without using a key, whether it has it."""

    def has_key(self, master_key_id: str) -> bool:
        """Whether ``master_key_id`` names a master key of this client."""


def wrap_with(kms: KmsClient, key: bytes, master_key_id: str) -> str:
    """``key`` wrapped by ``kms``; KeyUnavailableError when it refuses.

    pyarrow's clients may answer with ``bytes``, which are text all the same.
    """
    check_key_size(key)
    try:
        wrapped: object = kms.wrap_key(key, master_key_id)
        text = wrapped.decode() if isinstance(wrapped, bytes) else wrapped
    except KeyUnavailableError:
        raise
    except Exception as exc:
        raise _failure(kms, "wrap", master_key_id, exc) from exc
    if not isinstance(text, str):
        raise KeyUnavailableError(
            f"{type(kms).__name__}.wrap_key returned {type(text).__name__} for master key "
            f"{master_key_id!r}, wanted str"
        )
    return text


def unwrap_with(kms: KmsClient, wrapped_key: str, master_key_id: str) -> bytes:
    """The key that ``kms`` unwraps, of a valid AES size; KeyUnavailableError when it refuses."""
    try:
        key: object = kms.unwrap_key(wrapped_key, master_key_id)
    except (KeyUnavailableError, FormatError):
        raise
    except Exception as exc:
        raise _failure(kms, "unwrap", master_key_id, exc) from exc
    if not isinstance(key, bytes):
        raise KeyUnavailableError(
            f"{type(kms).__name__}.unwrap_key returned {type(key).__name__} for master key "
            f"{master_key_id!r}, wanted bytes"
        )
    check_key_size(key)
    return key


class KeyMisfitError(KeyUnavailableError):
    """A master key is at hand, and the wrapped key does not authenticate under it."""


def misfit(master_key_id: str) -> KeyMisfitError:
    """The error for a wrapped key whose tag does not match under the key that should unwrap it."""
    return KeyMisfitError(
        f"master key {master_key_id!r} does not fit: it did not wrap this key, or the key "
        "material was altered",
        hint="give the keyring or the KMS that the file was written with",
    )


def _failure(kms: KmsClient, verb: str, master_key_id: str, exc: Exception) -> KeyUnavailableError:
    if isinstance(exc, IntegrityError):
        return misfit(master_key_id)
    # Only the type of a foreign exception is repeated: its text may hold key bytes or tokens.
    return KeyUnavailableError(
        f"{type(kms).__name__} failed to {verb} a key under master key {master_key_id!r}: "
        f"{type(exc).__name__}",
        hint="the KMS's own error is the cause of this one (`__cause__`)",
    )
