"""Apache Paimon's file index with Bloom filters: build it, read it, probe it.

The index of a data file is ``<data file>.index`` beside it, in clear. A table may also have the
same bytes in its manifest.  :func:`build_index` writes the index of a Parquet file.  :func:`probe`
finds by the indexes which data files can be skipped.  :class:`FileIndex` reads and writes the
container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.paimon.bloom_filter64 import BloomFilter64, sizing
    from secure_bloom.paimon.column_filter import BuildReport, IndexOptions, IndexReport
    from secure_bloom.paimon.comparisons import And, Comparison, Operator, Or, as_predicate
    from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
    from secure_bloom.paimon.data_types import (
        DataType,
        hash_bytes,
        hash_long,
        hash_longs,
        hash_value,
    )
    from secure_bloom.paimon.index_builder import build_index, build_indexes
    from secure_bloom.paimon.index_description import ShowReport, show
    from secure_bloom.paimon.index_probe import PaimonProbe, Rules, must_read, probe
    from secure_bloom.paimon.physical_values import typed_forms

_HOMES = {
    "bloom_filter64": ["BloomFilter64", "sizing"],
    "index_builder": ["build_index", "build_indexes"],
    "container": ["ColumnIndexes", "FileIndex", "Index"],
    "index_description": ["ShowReport", "show"],
    "physical_values": ["typed_forms"],
    "data_types": ["hash_bytes", "hash_long", "hash_longs", "DataType", "hash_value"],
    "comparisons": ["And", "Comparison", "Operator", "Or", "as_predicate"],
    "index_probe": ["PaimonProbe", "Rules", "must_read", "probe"],
    "column_filter": ["BuildReport", "IndexOptions", "IndexReport"],
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
