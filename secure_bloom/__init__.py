"""Encryption-aware Bloom filters for Parquet lakes.

Adds split-block Bloom filters to Parquet files that are already written, without touching a data
page, encrypted like the columns they belong to; probes them; and shows what stands in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.lazy_names import lazy_names

if TYPE_CHECKING:
    from secure_bloom import hudi, paimon
    from secure_bloom.adding.add import add_bloom_filters
    from secure_bloom.auditing import audit
    from secure_bloom.auditing.findings import Finding
    from secure_bloom.bloom.probe import Verdict, probe
    from secure_bloom.bloom.split_block import SplitBlockBloomFilter
    from secure_bloom.encryption.keys import ExplicitKeys, Keyring, KmsClient
    from secure_bloom.encryption.policy import KeyPolicy
    from secure_bloom.encryption.trust import UnverifiedFileWarning
    from secure_bloom.errors import (
        FileBusyError,
        FileChangedError,
        FormatError,
        IntegrityError,
        KeyUnavailableError,
        KmsUnavailableError,
        PolicyError,
        SecureBloomError,
        UnfinishedWriteError,
        UnsupportedFeatureError,
        WorkerLostError,
    )
    from secure_bloom.inspection import inspect
    from secure_bloom.options import BloomFilterOptions
    from secure_bloom.parquet.pyarrow_kms import PyarrowKms
    from secure_bloom.reading import (
        ReadPlan,
        ReadReport,
        explain,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.rekeying import decrypt, keys_used, reencrypt, rotate_keys

#: The one home of the version: the build reads it here.
__version__ = "0.1.0"

_HOMES = {
    "adding.add": ["add_bloom_filters"],
    "auditing": ["audit"],
    "auditing.findings": ["Finding"],
    "bloom.probe": ["Verdict", "probe"],
    "bloom.split_block": ["SplitBlockBloomFilter"],
    "encryption.keys": ["ExplicitKeys", "Keyring", "KmsClient"],
    "encryption.policy": ["KeyPolicy"],
    "encryption.trust": ["UnverifiedFileWarning"],
    "errors": [
        "FileBusyError",
        "FileChangedError",
        "FormatError",
        "IntegrityError",
        "KeyUnavailableError",
        "KmsUnavailableError",
        "PolicyError",
        "SecureBloomError",
        "UnfinishedWriteError",
        "UnsupportedFeatureError",
        "WorkerLostError",
    ],
    "hudi": [],
    "inspection": ["inspect"],
    "options": ["BloomFilterOptions"],
    "paimon": [],
    "parquet.pyarrow_kms": ["PyarrowKms"],
    "reading": [
        "ReadPlan",
        "ReadReport",
        "explain",
        "plan_read",
        "read_batches",
        "read_row_groups",
        "read_table",
    ],
    "rekeying": ["decrypt", "keys_used", "reencrypt", "rotate_keys"],
}

__all__ = [
    "BloomFilterOptions",
    "ExplicitKeys",
    "FileBusyError",
    "FileChangedError",
    "Finding",
    "FormatError",
    "IntegrityError",
    "KeyPolicy",
    "KeyUnavailableError",
    "Keyring",
    "KmsClient",
    "KmsUnavailableError",
    "PolicyError",
    "PyarrowKms",
    "ReadPlan",
    "ReadReport",
    "SecureBloomError",
    "SplitBlockBloomFilter",
    "UnfinishedWriteError",
    "UnsupportedFeatureError",
    "UnverifiedFileWarning",
    "Verdict",
    "WorkerLostError",
    "add_bloom_filters",
    "audit",
    "decrypt",
    "explain",
    "hudi",
    "inspect",
    "keys_used",
    "paimon",
    "plan_read",
    "probe",
    "read_batches",
    "read_row_groups",
    "read_table",
    "reencrypt",
    "rotate_keys",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
