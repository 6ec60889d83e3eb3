"""Try a master key: wrap a random key, unwrap it, and compare."""

from __future__ import annotations

import os

from secure_bloom.encryption.kms.client import KeyInventory, KmsClient, unwrap_with, wrap_with
from secure_bloom.errors import FormatError, KeyUnavailableError, SecureBloomError

#: The shortest kind of key.
_TRIAL_BYTES = 16


def try_master_key(kms: KmsClient, name: str) -> SecureBloomError | None:
    """Return why master key ``name`` does not serve; None where it does.

    Raises KmsUnavailableError, which is not about the key.
    """
    if isinstance(kms, KeyInventory) and not kms.has_key(name):
        return KeyUnavailableError(f"the KMS has no master key {name}")
    # A random one, so that nothing between here and the KMS can have kept the answer.
    key = os.urandom(_TRIAL_BYTES)
    try:
        found = unwrap_with(kms, wrap_with(kms, key, name), name)
    except (KeyUnavailableError, FormatError) as error:
        return error
    if found != key:
        return KeyUnavailableError(f"master key {name} unwraps another key than it wrapped")
    return None
