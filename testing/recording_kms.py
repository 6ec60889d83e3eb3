"""A KMS that notes which master keys it is asked for, in all of its forms."""

from __future__ import annotations

from typing import ClassVar

from secure_bloom.encryption.kms import Keyring
from testing.tables import MASTER_KEYS

#: A key of somebody else's account, which the credentials of the tests may use too.
FOREIGN = "arn:aws:kms:eu-central-1:999999999999:key/11111111-2222-3333-4444-555555555555"
EVERY_KEY = Keyring(master_keys={**MASTER_KEYS, FOREIGN: bytes(range(16, 32)), "k_old": bytes(16)})


class RecordingKms:
    """The keys of the tests and a foreign one; ``asked`` are the names, for all objects of it."""

    asked: ClassVar[list[str]] = []

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        self.asked.append(master_key_identifier)
        return EVERY_KEY.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        self.asked.append(master_key_identifier)
        return EVERY_KEY.unwrap_key(wrapped_key, master_key_identifier)


class AbleKms(RecordingKms):
    """The same with all that a client may have: an inventory, renewing, moving, versions."""

    def has_key(self, master_key_id: str) -> bool:
        self.asked.append(master_key_id)
        return EVERY_KEY.has_key(master_key_id)

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        return self.move_key(wrapped_key, master_key_identifier, master_key_identifier)

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        key = self.unwrap_key(wrapped_key, old_master_key)
        return self.wrap_key(key, new_master_key)

    def key_version(self, wrapped_key: str) -> str:
        return "1"
