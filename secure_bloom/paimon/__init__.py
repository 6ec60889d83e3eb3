"""Apache Paimon's file index with Bloom filters: build it, read it, ask it.

The index of a data file is ``<data file>.index`` beside it, in clear, or the same bytes in the
manifest of a table.  :func:`build_index` writes one for a Parquet file, :func:`probe` asks those of
files and folders, :class:`FileIndex` reads and writes the container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.lazy_names import lazy_names

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

_HOMES = {
    "bloom": ["BloomFilter64", "sizing"],
    "building": ["build_index", "build_indexes"],
    "container": ["ColumnIndexes", "FileIndex", "Index"],
    "describing": ["ShowReport", "show"],
    "evaluation": ["Rules", "must_read", "typed_forms"],
    "hashing": ["hash_bytes", "hash_long", "hash_longs"],
    "predicates": ["And", "Comparison", "Operator", "Or", "as_predicate"],
    "probing": ["PaimonProbe", "probe"],
    "report": ["BuildReport", "IndexOptions", "IndexReport"],
    "types": ["DataType", "hash_value"],
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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
