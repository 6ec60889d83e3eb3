"""Encryption-aware Bloom filters for Parquet lakes.

Adds split-block Bloom filters to Parquet files that are already written, without touching a data
page, encrypted like the columns they belong to; probes them; and shows what stands in a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secure_bloom import hudi, paimon
    from secure_bloom.auditing import audit
    from secure_bloom.errors import (
        FileChangedError,
        FormatError,
        IntegrityError,
        KeyUnavailableError,
        PolicyError,
        SecureBloomError,
        UnsupportedFeatureError,
    )
    from secure_bloom.findings import Finding
    from secure_bloom.inspection import inspect
    from secure_bloom.keys import ExplicitKeys, Keyring, KmsClient
    from secure_bloom.options import BloomFilterOptions
    from secure_bloom.policy import KeyPolicy
    from secure_bloom.reader import Verdict, probe
    from secure_bloom.reading import (
        ReadPlan,
        ReadReport,
        explain,
        plan_read,
        read_batches,
        read_row_groups,
        read_table,
    )
    from secure_bloom.sbbf import SplitBlockBloomFilter
    from secure_bloom.writer import add_bloom_filters

#: Where each public name lives.  They are imported when they are first asked for, so that a probe
#: of one value does not pay for the writer's pyarrow and numba.
_HOMES = {
    "BloomFilterOptions": "options",
    "ExplicitKeys": "keys",
    "FileChangedError": "errors",
    "Finding": "findings",
    "FormatError": "errors",
    "IntegrityError": "errors",
    "KeyPolicy": "policy",
    "KeyUnavailableError": "errors",
    "Keyring": "keys",
    "KmsClient": "keys",
    "PolicyError": "errors",
    "ReadPlan": "reading",
    "ReadReport": "reading",
    "SecureBloomError": "errors",
    "SplitBlockBloomFilter": "sbbf",
    "UnsupportedFeatureError": "errors",
    "Verdict": "reader",
    "add_bloom_filters": "writer",
    "audit": "auditing",
    "explain": "reading",
    "inspect": "inspection",
    "plan_read": "reading",
    "probe": "reader",
    "read_batches": "reading",
    "read_row_groups": "reading",
    "read_table": "reading",
}
#: Packages with names of their own.
_PACKAGES = ("hudi", "paimon")

__all__ = [
    "BloomFilterOptions",
    "ExplicitKeys",
    "FileChangedError",
    "Finding",
    "FormatError",
    "IntegrityError",
    "KeyPolicy",
    "KeyUnavailableError",
    "Keyring",
    "KmsClient",
    "PolicyError",
    "ReadPlan",
    "ReadReport",
    "SecureBloomError",
    "SplitBlockBloomFilter",
    "UnsupportedFeatureError",
    "Verdict",
    "add_bloom_filters",
    "audit",
    "explain",
    "hudi",
    "inspect",
    "paimon",
    "plan_read",
    "probe",
    "read_batches",
    "read_row_groups",
    "read_table",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"secure_bloom.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'secure_bloom' has no attribute {name!r}")
    return getattr(import_module(f"secure_bloom.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
