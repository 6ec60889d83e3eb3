"""The data keys of files: key material (PKMT1), how it is wrapped, and the keys of a column chunk.

A run has one resolver.  It asks the KMS once for each wrapped key, however many files share it::

    resolver = KeyResolver(asked_once(kms), trust)
    keys = resolver.for_file(external)  # external() reads _KEY_MATERIAL_FOR_<file>.json
    footer_key = keys.footer_key(key_metadata)  # a DataKey, or KeyUnavailableError
"""

from secure_bloom.encryption.file_keys.material import ExternalReference, KeyMaterial
from secure_bloom.encryption.file_keys.resolver import (
    DataKey,
    FileKeys,
    KeyResolver,
    explicit_keys,
)
from secure_bloom.encryption.file_keys.wrapping import UnwrapsOnce, asked_once

__all__ = [
    "DataKey",
    "ExternalReference",
    "FileKeys",
    "KeyMaterial",
    "KeyResolver",
    "UnwrapsOnce",
    "asked_once",
    "explicit_keys",
]
