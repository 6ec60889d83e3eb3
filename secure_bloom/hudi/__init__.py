"""Apache Hudi's record key filters: Bloom filters and key ranges in the footers of base files.

    record_keys     the two filters, bit for bit, and their entries in a footer; bytes and texts
    key_column      the record keys of a file, from its key column
    filter_writer   build the filter of a file, and write it into the footer
    filter_reader   read filters and ranges, and describe them
    key_lookup      find the files that hold record keys: by range, by filter, by the data

Files may be encrypted.  The order of calls::

    add_record_key_filter("table/", policy="policy.toml")  # `filter_writer`
    read_record_key_filter("table/part-0.parquet", policy="policy.toml")
    lookup("table/", ["key-1", "key-2"], policy="policy.toml").files
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.calling import lazy_names

if TYPE_CHECKING:
    from secure_bloom.hudi.filter_reader import RecordKeyFilter, read_record_key_filter
    from secure_bloom.hudi.filter_writer import RecordKeyFilterOptions, add_record_key_filter
    from secure_bloom.hudi.key_lookup import FileLookup, LookupReport, lookup
    from secure_bloom.hudi.record_keys.bloom_filter import SimpleBloomFilter, sizing
    from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
    from secure_bloom.hudi.record_keys.packed_keys import HashType

_HOMES = {
    "filter_writer": ["RecordKeyFilterOptions", "add_record_key_filter"],
    "record_keys.dynamic": ["DynamicBoundedBloomFilter"],
    "record_keys.packed_keys": ["HashType"],
    "record_keys.bloom_filter": ["SimpleBloomFilter", "sizing"],
    "filter_reader": ["RecordKeyFilter", "read_record_key_filter"],
    "key_lookup": ["FileLookup", "LookupReport", "lookup"],
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
