"""KMS clients for the tests: one that counts, and one that is pyarrow's."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyarrow.parquet import encryption as pe

from secure_bloom.encryption.kms import Keyring

MASTER_KEYS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"1234567890123451"}


@dataclass
class CountingKms:
    """A KMS of another make, without `has_key`, that counts its calls."""

    keyring: Keyring = field(default_factory=lambda: Keyring(master_keys=MASTER_KEYS))
    wraps: int = 0
    unwraps: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.wraps += 1
        return self.keyring.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        with self.lock:
            self.unwraps += 1
        return self.keyring.unwrap_key(wrapped_key, master_key_identifier)


class PyarrowKms(pe.KmsClient):
    """pyarrow's own interface, over a keyring; it may answer in bytes, as pyarrow's examples do."""

    def __init__(self, keyring: Keyring, answers_bytes: bool = True) -> None:
        super().__init__()
        self.keyring = keyring
        self.answers_bytes = answers_bytes

    def wrap_key(self, key_bytes, master_key_identifier):
        wrapped = self.keyring.wrap_key(key_bytes, master_key_identifier)
        return wrapped.encode() if self.answers_bytes else wrapped

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return self.keyring.unwrap_key(wrapped_key, master_key_identifier)
