"""Apache Hudi's record key filters: Bloom filters and key ranges in the footers of base files.

``SimpleBloomFilter`` and ``DynamicBoundedBloomFilter`` are Hudi's two filters, bit for bit;
``add_record_key_filter`` and ``read_record_key_filter`` write and read them in Parquet files,
encrypted or not; ``lookup`` finds the files that hold given record keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.lazy_names import lazy_names

if TYPE_CHECKING:
    from secure_bloom.hudi.adding import RecordKeyFilterOptions, add_record_key_filter
    from secure_bloom.hudi.bloom.dynamic import DynamicBoundedBloomFilter
    from secure_bloom.hudi.bloom.hashing import HashType
    from secure_bloom.hudi.bloom.header import sizing
    from secure_bloom.hudi.bloom.simple import SimpleBloomFilter
    from secure_bloom.hudi.reading import RecordKeyFilter, read_record_key_filter
    from secure_bloom.hudi.searching import FileLookup, LookupReport, lookup

_HOMES = {
    "adding": ["RecordKeyFilterOptions", "add_record_key_filter"],
    "bloom.dynamic": ["DynamicBoundedBloomFilter"],
    "bloom.hashing": ["HashType"],
    "bloom.header": ["sizing"],
    "bloom.simple": ["SimpleBloomFilter"],
    "reading": ["RecordKeyFilter", "read_record_key_filter"],
    "searching": ["FileLookup", "LookupReport", "lookup"],
}

__all__ = [
    "DynamicBoundedBloomFilter",
    "FileLookup",
    "HashType",
    "LookupReport",
    "RecordKeyFilter",
    "RecordKeyFilterOptions",
    "SimpleBloomFilter",
    "add_record_key_filter",
    "lookup",
    "read_record_key_filter",
    "sizing",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
