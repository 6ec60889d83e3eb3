"""Encryption-aware Bloom filters for Parquet tables.

Adds split-block Bloom filters to Parquet files that are already written, without changing a data
page.  A filter is encrypted like its column.  Also probes filters, and describes files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom import hudi, paimon
    from secure_bloom.adding.report import AddReport
    from secure_bloom.adding.request import Columns
    from secure_bloom.advising.table_advice import ColumnAdvice, TableAdvice
    from secure_bloom.api.add import add_bloom_filters
    from secure_bloom.api.advise import advise
    from secure_bloom.api.audit import audit
    from secure_bloom.api.inspect import inspect, keys_used
    from secure_bloom.api.probe import probe
    from secure_bloom.api.read import (
        explain,
        open_table,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.api.rekey import decrypt, reencrypt, rotate_keys
    from secure_bloom.api.sql import sql
    from secure_bloom.api.trace import trace
    from secure_bloom.auditing.findings import AuditReport, Finding
    from secure_bloom.bloom.split_block import SplitBlockBloomFilter
    from secure_bloom.bloom.verdicts import ProbeReport, Verdict
    from secure_bloom.calling.options import BloomFilterOptions
    from secure_bloom.encryption.access import GivenKeys, GivenPolicy
    from secure_bloom.encryption.kms import ExplicitKeys, Keyring, KmsClient
    from secure_bloom.encryption.policy import KeyPolicy
    from secure_bloom.encryption.trust import UnverifiedFileWarning
    from secure_bloom.errors import (
        AccessDeniedError,
        FileBusyError,
        FileChangedError,
        FormatError,
        IntegrityError,
        KeyUnavailableError,
        KmsUnavailableError,
        MissingExtraError,
        MissingPathError,
        PlatformError,
        PolicyError,
        SecureBloomError,
        StoreUnavailableError,
        TimeLimitError,
        UnfinishedWriteError,
        UnsupportedFeatureError,
        WorkerLostError,
    )
    from secure_bloom.inspecting.files import InspectReport
    from secure_bloom.parquet.pyarrow_encryption import (
        PyarrowEncryption,
        PyarrowKms,
        pyarrow_encryption,
    )
    from secure_bloom.reading import ReadPlan, ReadReport, Table, Where
    from secure_bloom.rekeying.rekey_report import RekeyReport
    from secure_bloom.running.time_limit import time_limit
    from secure_bloom.storage.paths import Paths
    from secure_bloom.tracing.report import TraceReport

#: The one home of the version: the build reads it here.
__version__ = "0.2.0"

_HOMES = {
    "adding.report": ["AddReport"],
    "adding.request": ["Columns"],
    "advising.table_advice": ["ColumnAdvice", "TableAdvice"],
    "api.add": ["add_bloom_filters"],
    "api.advise": ["advise"],
    "api.audit": ["audit"],
    "api.inspect": ["inspect", "keys_used"],
    "api.probe": ["probe"],
    "api.read": [
        "explain",
        "open_table",
        "plan_read",
        "read_batches",
        "read_row_groups",
        "read_table",
    ],
    "api.rekey": ["decrypt", "reencrypt", "rotate_keys"],
    "api.sql": ["sql"],
    "api.trace": ["trace"],
    "auditing.findings": ["AuditReport", "Finding"],
    "bloom.verdicts": ["ProbeReport", "Verdict"],
    "bloom.split_block": ["SplitBlockBloomFilter"],
    "encryption.access": ["GivenKeys", "GivenPolicy"],
    "encryption.kms": ["ExplicitKeys", "Keyring", "KmsClient"],
    "encryption.policy": ["KeyPolicy"],
    "encryption.trust": ["UnverifiedFileWarning"],
    "errors": [
        "AccessDeniedError",
        "FileBusyError",
        "FileChangedError",
        "FormatError",
        "IntegrityError",
        "KeyUnavailableError",
        "KmsUnavailableError",
        "MissingExtraError",
        "MissingPathError",
        "PlatformError",
        "PolicyError",
        "SecureBloomError",
        "StoreUnavailableError",
        "TimeLimitError",
        "UnfinishedWriteError",
        "UnsupportedFeatureError",
        "WorkerLostError",
    ],
    "hudi": [],
    "inspecting.files": ["InspectReport"],
    "calling.options": ["BloomFilterOptions"],
    "paimon": [],
    "parquet.pyarrow_encryption": ["PyarrowEncryption", "PyarrowKms", "pyarrow_encryption"],
    "reading": ["ReadPlan", "ReadReport", "Table", "Where"],
    "rekeying.rekey_report": ["RekeyReport"],
    "running.time_limit": ["time_limit"],
    "storage.paths": ["Paths"],
    "tracing.report": ["TraceReport"],
}

__all__ = [
    "AccessDeniedError",
    "AddReport",
    "AuditReport",
    "BloomFilterOptions",
    "ColumnAdvice",
    "Columns",
    "ExplicitKeys",
    "FileBusyError",
    "FileChangedError",
    "Finding",
    "FormatError",
    "GivenKeys",
    "GivenPolicy",
    "InspectReport",
    "IntegrityError",
    "KeyPolicy",
    "KeyUnavailableError",
    "Keyring",
    "KmsClient",
    "KmsUnavailableError",
    "MissingExtraError",
    "MissingPathError",
    "Paths",
    "PlatformError",
    "PolicyError",
    "ProbeReport",
    "PyarrowEncryption",
    "PyarrowKms",
    "ReadPlan",
    "ReadReport",
    "RekeyReport",
    "SecureBloomError",
    "SplitBlockBloomFilter",
    "StoreUnavailableError",
    "Table",
    "TableAdvice",
    "TimeLimitError",
    "TraceReport",
    "UnfinishedWriteError",
    "UnsupportedFeatureError",
    "UnverifiedFileWarning",
    "Verdict",
    "Where",
    "WorkerLostError",
    "add_bloom_filters",
    "advise",
    "audit",
    "decrypt",
    "explain",
    "hudi",
    "inspect",
    "keys_used",
    "open_table",
    "paimon",
    "plan_read",
    "probe",
    "pyarrow_encryption",
    "read_batches",
    "read_row_groups",
    "read_table",
    "reencrypt",
    "rotate_keys",
    "sql",
    "time_limit",
    "trace",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
