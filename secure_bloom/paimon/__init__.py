"""Apache Paimon's file index with Bloom filters: build it, read it, ask it.

The index of a data file is ``<data file>.index`` beside it, in clear, or the same bytes in the
manifest of a table.  :func:`build_index` writes one for a Parquet file, :func:`probe` asks those of
files and folders, :class:`FileIndex` reads and writes the container.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secure_bloom.paimon.bloom import BloomFilter64, sizing
    from secure_bloom.paimon.building import build_index, build_indexes
    from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
    from secure_bloom.paimon.describing import ShowReport, show
    from secure_bloom.paimon.evaluation import Rules, must_read, typed_forms
    from secure_bloom.paimon.hashing import hash_bytes, hash_long, hash_longs
    from secure_bloom.paimon.predicates import And, Comparison, Operator, Or, as_predicate
    from secure_bloom.paimon.probing import PaimonProbe, probe
    from secure_bloom.paimon.report import BuildReport, IndexOptions, IndexReport
    from secure_bloom.paimon.types import DataType, hash_value

#: Where each name lives; imported when it is first asked for, as in :mod:`secure_bloom`.
_HOMES = {
    "And": "predicates",
    "BloomFilter64": "bloom",
    "BuildReport": "report",
    "ColumnIndexes": "container",
    "Comparison": "predicates",
    "DataType": "types",
    "FileIndex": "container",
    "Index": "container",
    "IndexOptions": "report",
    "IndexReport": "report",
    "Operator": "predicates",
    "Or": "predicates",
    "PaimonProbe": "probing",
    "Rules": "evaluation",
    "ShowReport": "describing",
    "build_index": "building",
    "build_indexes": "building",
    "hash_bytes": "hashing",
    "hash_long": "hashing",
    "hash_longs": "hashing",
    "hash_value": "types",
    "must_read": "evaluation",
    "as_predicate": "predicates",
    "probe": "probing",
    "show": "describing",
    "sizing": "bloom",
    "typed_forms": "evaluation",
}

__all__ = [
    "And",
    "BloomFilter64",
    "BuildReport",
    "ColumnIndexes",
    "Comparison",
    "DataType",
    "FileIndex",
    "Index",
    "IndexOptions",
    "IndexReport",
    "Operator",
    "Or",
    "PaimonProbe",
    "Rules",
    "ShowReport",
    "as_predicate",
    "build_index",
    "build_indexes",
    "hash_bytes",
    "hash_long",
    "hash_longs",
    "hash_value",
    "must_read",
    "probe",
    "show",
    "sizing",
    "typed_forms",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'secure_bloom.paimon' has no attribute {name!r}")
    return getattr(import_module(f"secure_bloom.paimon.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
