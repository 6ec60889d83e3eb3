"""A KMS client of ours as pyarrow wants one: pyarrow takes only objects of its own class."""

from __future__ import annotations

import pyarrow.parquet.encryption as pe

from secure_bloom.arguments import checked_arguments
from secure_bloom.encryption.keys import KmsClient, unwrap_with, wrap_with
from secure_bloom.errors import KeyUnavailableError


class PyarrowKms(pe.KmsClient):  # type: ignore[misc]
    """Wraps and unwraps by ``kms``, for ``pyarrow.parquet.encryption.CryptoFactory``.

    ``CryptoFactory(lambda _: PyarrowKms(kms))``.  Without ``kms`` there is no key.  Raises
    KeyUnavailableError where the KMS refuses, KmsUnavailableError where it is down.
    """

    @checked_arguments
    def __init__(self, kms: KmsClient | None) -> None:
        super().__init__()
        self._kms = kms

    @checked_arguments
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` under the master key."""
        return wrap_with(self._found(master_key_identifier), key_bytes, master_key_identifier)

    @checked_arguments
    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped."""
        # pyarrow hands over bytes, although its own description says text.
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        return unwrap_with(self._found(master_key_identifier), text, master_key_identifier)

    def _found(self, master_key_id: str) -> KmsClient:
        if self._kms is None:
            raise KeyUnavailableError(f"there is no KMS for master key {master_key_id!r}")
        return self._kms
