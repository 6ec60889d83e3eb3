"""Turn a column's physical values, as arrays, into the entries of its filter.

A filter hashes bits, but engines compare values, and some equal values have different bits:

- 0.0 and -0.0: if one occurs, both are inserted;
- NaN: if any occurs, the quiet NaN of either sign is inserted too.  Spark finds NaN equal to NaN,
  and looks ``x = NaN`` up in the filter by one of those two.

Some values are inserted in a second form, because some reader looks for that form:

- a FLOAT16 also as the four bytes of a FLOAT: otherwise DuckDB (seen in 2.0.0) would lose every
  row, because it looks for these bytes instead of the format's;
- a BYTE_ARRAY decimal also without the leading bytes that only repeat its sign: readers look
  numbers up in their shortest form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.logical_types import Kind
from secure_bloom.parquet.plain_pages import as_arrays
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary, EncodedValues, Entries, is_float16


def forms(leaf: Leaf) -> int:
    """Return the number of forms in which a value of ``leaf`` is inserted into its filter."""
    return 2 if is_float16(leaf) or _is_byte_array_decimal(leaf) else 1


def insert_entries(
    bloom_filter: SplitBlockBloomFilter, leaf: Leaf, values: Entries | EncodedValues
) -> None:
    """Insert physical values of ``leaf`` in all their forms."""
    if isinstance(values, EncodedValues):
        if not _has_further_forms(leaf):
            bloom_filter.insert_plain(values.content, values.count, values.width or 0)
            return
        values = as_arrays(leaf, values)
    entries = _with_nans(_with_both_zeros(values))
    _insert(bloom_filter, entries)
    if forms(leaf) > 1:
        _insert(bloom_filter, _second_form(entries))


def count_missed(
    bloom_filter: SplitBlockBloomFilter, values: Entries, *, both_zeros: bool = True
) -> int:
    """Return the number of ``values`` that the filter lacks.

    Only the form that the format prescribes is looked up. With ``both_zeros``, both zeros are
    looked up if one occurs.  Other writers' filters need not have NaN.
    """
    chunks = _hashes(_without_nans(_with_both_zeros(values) if both_zeros else values))
    return sum(int((~bloom_filter.check_hashes(chunk)).sum()) for chunk in chunks)


def _has_further_forms(leaf: Leaf) -> bool:
    """Return whether values may be inserted with other bits than their own."""
    return leaf.type in (Type.FLOAT, Type.DOUBLE) or forms(leaf) > 1


def _insert(bloom_filter: SplitBlockBloomFilter, entries: Entries) -> None:
    if isinstance(entries, Binary):
        bloom_filter.insert_binary(entries.offsets, entries.data, prefix=entries.prefix)
    else:
        bloom_filter.insert_fixed(entries)


def _hashes(entries: Entries) -> Iterator[NDArray[np.uint64]]:
    if isinstance(entries, Binary):
        return xxh64.binary_chunks(entries.offsets, entries.data, prefix=entries.prefix)
    return xxh64.fixed_chunks(entries)


def _second_form(entries: Entries) -> Entries:
    if isinstance(entries, Binary):
        return _without_padding(entries)
    # Exact: every FLOAT16 is a FLOAT.
    return entries.astype("<f4")


def _is_byte_array_decimal(leaf: Leaf) -> bool:
    return leaf.type is Type.BYTE_ARRAY and leaf.logical.kind is Kind.DECIMAL


def _without_padding(numbers: Binary) -> Binary:
    """Remove leading bytes of big-endian numbers that only repeat the sign."""
    offsets, data = numbers.offsets, numbers.data
    kept = np.ones(len(data), np.bool_)
    # Values of PLAIN pages follow their lengths, which are no part of the number.
    for byte in range(numbers.prefix):
        kept[offsets[:-1] + byte] = False
    starts, ends = offsets[:-1] + numbers.prefix, offsets[1:]
    while len(starts):
        # The last byte stays, because a number has at least one.
        has_two = ends - starts > 1
        starts, ends = starts[has_two], ends[has_two]
        sign_of_next = np.where(data[starts + 1] < 0x80, 0x00, 0xFF)
        is_padded = data[starts] == sign_of_next
        starts, ends = starts[is_padded], ends[is_padded]
        kept[starts] = False
        starts = starts + 1
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    return Binary(offsets=kept_before[offsets], data=data[kept])


def _with_both_zeros(values: Entries) -> Entries:
    # Only where one occurs: else each filter of numbers would say "maybe" of zero.
    if _is_floating(values) and (values == 0).any():
        return np.concatenate([values, np.array([0.0, -0.0], dtype=values.dtype)])
    return values


def _with_nans(entries: Entries) -> Entries:
    """Return the entries, with the quiet NaN of either sign added if there is any NaN."""
    if not _is_floating(entries) or not np.isnan(entries).any():
        return entries
    quiet = np.array([np.nan], dtype=entries.dtype)
    # Java makes NaN without a sign, x86 with one, and their hashes differ.
    return np.concatenate([entries, np.copysign(quiet, 1), np.copysign(quiet, -1)])


def _without_nans(entries: Entries) -> Entries:
    return entries[~np.isnan(entries)] if _is_floating(entries) else entries


def _is_floating(entries: Entries) -> TypeGuard[NDArray[Any]]:
    return not isinstance(entries, Binary) and entries.dtype.kind == "f"
