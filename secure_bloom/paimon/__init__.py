"""Apache Paimon's file index with Bloom filters: build it, read it, probe it.

    data_types, physical_values   which values of a file are hashed, and in which form
    bloom_filter64                the filter of one column
    container                     ``<data file>.index``, or the same bytes in a manifest
    column_filter, index_builder  values of a file -> filters -> the index beside it, in clear
    index_files, index_readers    find the index of a file, and ask the indexes of a column
    index_probe                   the data files that a predicate rules out
    build                         the public functions: index files beside files, commits to a table
    table_files, index_work       the files of a table that get an index, and the work on a file
    table_run                     the target of ``runs``: tasks, and snapshots that list the indexes

The order of calls::

    build_index("t/data-0.parquet", columns=["id"])  # writes t/data-0.parquet.index
    FileIndex.from_bytes(content).columns  # the content of that file
    probe("t/", "id = 5").files  # a verdict for each data file
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.paimon.bloom_filter64 import BloomFilter64, sizing
    from secure_bloom.paimon.build import build_index, build_indexes
    from secure_bloom.paimon.column_filter import (
        BuildReport,
        IndexCommit,
        IndexOptions,
        IndexReport,
    )
    from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
    from secure_bloom.paimon.data_types import (
        DataType,
        hash_bytes,
        hash_long,
        hash_longs,
        hash_value,
    )
    from secure_bloom.paimon.index_description import ShowReport, show
    from secure_bloom.paimon.index_probe import PaimonProbe, must_read, probe
    from secure_bloom.paimon.index_readers import And, Comparison, Operator, Or, as_predicate
    from secure_bloom.paimon.physical_values import typed_forms

_HOMES = {
    "bloom_filter64": ["BloomFilter64", "sizing"],
    "build": ["build_index", "build_indexes"],
    "container": ["ColumnIndexes", "FileIndex", "Index"],
    "index_description": ["ShowReport", "show"],
    "physical_values": ["typed_forms"],
    "data_types": ["hash_bytes", "hash_long", "hash_longs", "DataType", "hash_value"],
    "index_readers": ["And", "Comparison", "Operator", "Or", "as_predicate"],
    "index_probe": ["PaimonProbe", "must_read", "probe"],
    "column_filter": ["BuildReport", "IndexCommit", "IndexOptions", "IndexReport"],
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
    "IndexCommit",
    "IndexOptions",
    "IndexReport",
    "Operator",
    "Or",
    "PaimonProbe",
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
