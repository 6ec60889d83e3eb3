"""Sources of keys: KMS clients, keyrings, key material (PKMT1) and how they meet in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling.lazy_names import lazy_names
from secure_bloom.encryption.keys.client import (
    KeyInventory,
    KeyMisfitError,
    KeyMover,
    KeyRewrapper,
    KeyVersions,
    KmsClient,
    moved_with,
    rewrap_with,
    unwrap_with,
    wrap_with,
)
from secure_bloom.encryption.keys.explicit import ExplicitKeys
from secure_bloom.encryption.keys.keyring import (
    Keyring,
    KeyringPermissionWarning,
    add_master_keys,
    new_keyring,
)
from secure_bloom.encryption.keys.material import ExternalReference, KeyMaterial
from secure_bloom.encryption.keys.named_keys import KeyNotNamedError, NamedKeys
from secure_bloom.encryption.keys.resolver import DataKey, FileKeys, KeyResolver, explicit_keys
from secure_bloom.encryption.keys.trial import try_master_key
from secure_bloom.encryption.keys.unwrapped_keys import UnwrapsOnce, asked_once

if TYPE_CHECKING:
    from secure_bloom.encryption.keys.providers import kms_client

__all__ = [
    "DataKey",
    "ExplicitKeys",
    "ExternalReference",
    "FileKeys",
    "KeyInventory",
    "KeyMaterial",
    "KeyMisfitError",
    "KeyMover",
    "KeyNotNamedError",
    "KeyResolver",
    "KeyRewrapper",
    "KeyVersions",
    "Keyring",
    "KeyringPermissionWarning",
    "KmsClient",
    "NamedKeys",
    "UnwrapsOnce",
    "add_master_keys",
    "asked_once",
    "explicit_keys",
    "kms_client",
    "moved_with",
    "new_keyring",
    "rewrap_with",
    "try_master_key",
    "unwrap_with",
    "wrap_with",
]

#: The clients of all KMSs are loaded when one is wanted.
__getattr__, _ = lazy_names(__name__, {"providers": ["kms_client"]})
