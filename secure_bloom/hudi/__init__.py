"""Apache Hudi's record key filters: Bloom filters and key ranges in the footers of base files.

``SimpleBloomFilter`` and ``DynamicBoundedBloomFilter`` are Hudi's two filters, bit for bit;
``add_record_key_filter`` and ``read_record_key_filter`` write and read them in Parquet files,
encrypted or not; ``lookup`` finds the files that hold given record keys.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secure_bloom.hudi.adding import RecordKeyFilterOptions, add_record_key_filter
    from secure_bloom.hudi.bloom.dynamic import DynamicBoundedBloomFilter
    from secure_bloom.hudi.bloom.hashing import HashType
    from secure_bloom.hudi.bloom.header import sizing
    from secure_bloom.hudi.bloom.simple import SimpleBloomFilter
    from secure_bloom.hudi.reading import RecordKeyFilter, read_record_key_filter
    from secure_bloom.hudi.searching import FileLookup, LookupReport, lookup

#: Where each public name lives; imported when first asked for, so that a filter alone stays light.
_HOMES = {
    "DynamicBoundedBloomFilter": "bloom.dynamic",
    "FileLookup": "searching",
    "HashType": "bloom.hashing",
    "LookupReport": "searching",
    "RecordKeyFilter": "reading",
    "RecordKeyFilterOptions": "adding",
    "SimpleBloomFilter": "bloom.simple",
    "add_record_key_filter": "adding",
    "lookup": "searching",
    "read_record_key_filter": "reading",
    "sizing": "bloom.header",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'secure_bloom.hudi' has no attribute {name!r}")
    return getattr(import_module(f"secure_bloom.hudi.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
