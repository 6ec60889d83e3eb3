"""Arrow arrays of a column's physical values -> what stands in its filter for them.

A filter hashes raw bits, and engines compare values: both zeros go in where either occurs, and
where a NaN does also the two that readers look NaN up by (Spark pushes ``x = NaN`` down to the
filter, and finds NaN equal to NaN).  Some values go in under a second form, because a reader looks
for that one:

- a FLOAT16 as the four bytes of a FLOAT: DuckDB (seen in 2.0.0) would lose every row with a filter
  that has only what the format says;
- a BYTE_ARRAY decimal without the leading bytes that only repeat its sign: readers look numbers up
  in their shortest form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom import xxh64
from secure_bloom.logical import Kind, logical_type
from secure_bloom.metadata import Type
from secure_bloom.sbbf import SplitBlockBloomFilter
from secure_bloom.schema import Leaf

#: Values of one width, or offsets and data of Arrow's binary layout.
Entries: TypeAlias = NDArray[Any] | tuple[NDArray[Any], NDArray[np.uint8]]

_FIXED_TYPES: dict[Type, np.dtype[Any]] = {
    Type.INT32: np.dtype("<i4"),
    Type.INT64: np.dtype("<i8"),
    Type.FLOAT: np.dtype("<f4"),
    Type.DOUBLE: np.dtype("<f8"),
}


def forms(leaf: Leaf) -> int:
    """Under how many forms a value of ``leaf`` goes into its filter."""
    return 2 if _is_float16(leaf) or _is_byte_array_decimal(leaf) else 1


def insert_array(bloom_filter: SplitBlockBloomFilter, leaf: Leaf, array: pa.Array) -> None:
    """Insert physical values of ``leaf``, an array without nulls, under all their forms."""
    entries = _with_nans(_stored_form(leaf, array))
    _insert(bloom_filter, entries)
    if forms(leaf) > 1:
        _insert(bloom_filter, _second_form(entries))


def count_missed(bloom_filter: SplitBlockBloomFilter, leaf: Leaf, array: pa.Array) -> int:
    """How many values of ``array`` the filter does not have, though it should have all.

    Only the form that the format prescribes is asked for, and both zeros where either occurs.
    Other writers' filters need not have NaN.
    """
    chunks = _hashes(_without_nans(_stored_form(leaf, array)))
    return sum(int((~bloom_filter.check_hashes(chunk)).sum()) for chunk in chunks)


def _insert(bloom_filter: SplitBlockBloomFilter, entries: Entries) -> None:
    if isinstance(entries, tuple):
        bloom_filter.insert_binary(*entries)
    else:
        bloom_filter.insert_fixed(entries)


def _hashes(entries: Entries) -> Iterator[NDArray[np.uint64]]:
    if isinstance(entries, tuple):
        return xxh64.binary_chunks(*entries)
    return xxh64.fixed_chunks(entries)


def _stored_form(leaf: Leaf, array: pa.Array) -> Entries:
    """The values as the format hashes them."""
    if leaf.type is Type.BYTE_ARRAY:
        return _binary_buffers(array)
    fixed = _fixed_values(leaf, array)
    return _with_both_zeros(fixed) if fixed.dtype.kind == "f" else fixed


def _second_form(entries: Entries) -> Entries:
    if isinstance(entries, tuple):
        return _without_padding(*entries)
    return entries.astype("<f4")


def _is_float16(leaf: Leaf) -> bool:
    return logical_type(leaf.element).kind is Kind.FLOAT16


def _is_byte_array_decimal(leaf: Leaf) -> bool:
    return leaf.type is Type.BYTE_ARRAY and logical_type(leaf.element).kind is Kind.DECIMAL


def _without_padding(
    offsets: NDArray[Any], data: NDArray[np.uint8]
) -> tuple[NDArray[Any], NDArray[np.uint8]]:
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


def _binary_buffers(array: pa.Array) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Offsets (one more than values) and data of Arrow's binary layout."""
    is_large = pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    every = np.frombuffer(offsets, dtype="<i8" if is_large else "<i4")
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return every[array.offset : array.offset + len(array) + 1], content


def _fixed_values(leaf: Leaf, array: pa.Array) -> NDArray[Any]:
    dtype = _FIXED_TYPES.get(leaf.type) or np.dtype(f"V{leaf.width}")
    if _is_float16(leaf):
        dtype = np.dtype("<f2")
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(
        array.buffers()[1], dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize
    )


def _with_both_zeros(values: NDArray[Any]) -> NDArray[Any]:
    if (values == 0).any():
        return np.concatenate([values, np.array([0.0, -0.0], dtype=values.dtype)])
    return values


def _with_nans(entries: Entries) -> Entries:
    """The same with the quiet NaN of either sign, where there is any NaN."""
    if isinstance(entries, tuple) or entries.dtype.kind != "f" or not np.isnan(entries).any():
        return entries
    quiet = np.array([np.nan], dtype=entries.dtype)
    return np.concatenate([entries, np.copysign(quiet, 1), np.copysign(quiet, -1)])


def _without_nans(entries: Entries) -> Entries:
    if isinstance(entries, tuple) or entries.dtype.kind != "f":
        return entries
    return entries[~np.isnan(entries)]
