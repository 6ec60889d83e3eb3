"""Wrap and unwrap keys: KMS clients, keyrings, and explicit keys.

``[kms]`` of a policy names a client.  Every client makes its calls through ``calls.Calls``, which
limits their number, repeats them after a pause, and gives up after a time.  Other rooms call a
client by the functions ``*_with``, which translate the client's errors::

    kms = kms_client({"client": "vault", "url": "https://..."}, base=Path("."))
    wrapped = wrap_with(kms, data_key, "k_pii")
    data_key = unwrap_with(kms, wrapped, "k_pii")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names
from secure_bloom.encryption.kms.client import (
    KeyInventory,
    KeyMisfitError,
    KeyMover,
    KeyNotNamedError,
    KeyRewrapper,
    KeyVersions,
    KmsClient,
    NamedKeys,
    moved_with,
    rewrap_with,
    try_master_key,
    unwrap_with,
    wrap_with,
)
from secure_bloom.encryption.kms.keyring import (
    ExplicitKeys,
    Keyring,
    KeyringPermissionWarning,
    add_master_keys,
    new_keyring,
)

if TYPE_CHECKING:
    from secure_bloom.encryption.kms.providers import kms_client, version_in

__all__ = [
    "ExplicitKeys",
    "KeyInventory",
    "KeyMisfitError",
    "KeyMover",
    "KeyNotNamedError",
    "KeyRewrapper",
    "KeyVersions",
    "Keyring",
    "KeyringPermissionWarning",
    "KmsClient",
    "NamedKeys",
    "add_master_keys",
    "kms_client",
    "moved_with",
    "new_keyring",
    "rewrap_with",
    "try_master_key",
    "unwrap_with",
    "version_in",
    "wrap_with",
]

#: The clients of KMSs are loaded when one is wanted.
__getattr__, _ = lazy_names(__name__, {"providers": ["kms_client", "version_in"]})
