"""The values of a column chunk -> its filter.

Built at an upper bound, from the number of values, then folded while the exact false-positive
probability of its own bits stays within the request: no count of distinct values is needed.  Both
zeros go in where either occurs and NaN never does, because engines compare zeros equal and raw
bits do not (BloomFilter.md hashes raw bits).

A FLOAT16 goes in twice, as its own two bytes and as the four of a FLOAT: DuckDB (seen in 2.0.0)
looks for the latter and would lose every row with a filter that has only what the format says.
A BYTE_ARRAY decimal that is stored with more bytes than it needs goes in without them too: readers
look for the fewest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from secure_bloom.logical import Kind, logical_type
from secure_bloom.metadata import Type
from secure_bloom.options import BloomFilterOptions
from secure_bloom.sbbf import SplitBlockBloomFilter, block_count_for
from secure_bloom.schema import Leaf
from secure_bloom.values import ChunkValues

_FIXED_TYPES: dict[Type, np.dtype[Any]] = {
    Type.INT32: np.dtype("<i4"),
    Type.INT64: np.dtype("<i8"),
    Type.FLOAT: np.dtype("<f4"),
    Type.DOUBLE: np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFilter:
    """A filter and how many values went into it, from which source."""

    filter: SplitBlockBloomFilter
    values: int
    source: str


def build_filter(leaf: Leaf, values: ChunkValues, options: BloomFilterOptions) -> BuiltFilter:
    """The smallest filter of ``values`` that keeps ``options``; consumes ``values.arrays``."""
    entries = values.upper_bound * (2 if _is_float16(leaf) or _is_byte_array_decimal(leaf) else 1)
    blocks = block_count_for(entries, options.fpp, options.max_bytes)
    bloom_filter = SplitBlockBloomFilter(blocks)
    count = 0
    for array in values.arrays:
        insert_array(bloom_filter, leaf, array)
        count += len(array)
    return BuiltFilter(
        filter=bloom_filter.folded_to(options.fpp), values=count, source=values.source
    )


def insert_array(bloom_filter: SplitBlockBloomFilter, leaf: Leaf, array: pa.Array) -> None:
    """Insert physical values of ``leaf``, an array without nulls."""
    if leaf.type is Type.BYTE_ARRAY:
        offsets, data = _binary_buffers(array)
        bloom_filter.insert_binary(offsets, data)
        if _is_byte_array_decimal(leaf):
            bloom_filter.insert_binary(*_without_padding(offsets, data))
        return
    fixed = _fixed_values(leaf, array)
    if fixed.dtype.kind == "f":
        fixed = _with_both_zeros(fixed)
    bloom_filter.insert_fixed(fixed)
    if _is_float16(leaf):
        bloom_filter.insert_fixed(fixed.astype("<f4"))


def _is_float16(leaf: Leaf) -> bool:
    return logical_type(leaf.element).kind is Kind.FLOAT16


def _is_byte_array_decimal(leaf: Leaf) -> bool:
    return leaf.type is Type.BYTE_ARRAY and logical_type(leaf.element).kind is Kind.DECIMAL


def _without_padding(offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same big-endian numbers without leading bytes that only repeat the sign."""
    kept = np.ones(len(data), np.bool_)
    starts, ends = offsets[:-1], offsets[1:]
    while len(starts):
        has_two = ends - starts > 1
        starts, ends = starts[has_two], ends[has_two]
        sign_of_next = np.where(data[starts + 1] < 0x80, 0x00, 0xFF)
        is_padded = data[starts] == sign_of_next
        starts, ends = starts[is_padded], ends[is_padded]
        kept[starts] = False
        starts = starts + 1
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    return kept_before[offsets], data[kept]


def _binary_buffers(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Offsets (one more than values) and data of Arrow's binary layout."""
    is_large = pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    every = np.frombuffer(offsets, dtype="<i8" if is_large else "<i4")
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return every[array.offset : array.offset + len(array) + 1], content


def _fixed_values(leaf: Leaf, array: pa.Array) -> np.ndarray:
    dtype = _FIXED_TYPES.get(leaf.type) or np.dtype(f"V{leaf.width}")
    if _is_float16(leaf):
        dtype = np.dtype("<f2")
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(
        array.buffers()[1], dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize
    )


def _with_both_zeros(values: np.ndarray) -> np.ndarray:
    kept: np.ndarray = values[~np.isnan(values)]
    if (kept == 0).any():
        return np.concatenate([kept, np.array([0.0, -0.0], dtype=values.dtype)])
    return kept
