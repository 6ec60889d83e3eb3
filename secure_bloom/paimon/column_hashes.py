"""The hashes of many stored values of a column; :mod:`physical_values` hashes a single one.

The arrays have the stored type and no nulls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom import xxh64
from secure_bloom.paimon.data_types import float_bits
from secure_bloom.paimon.hashing import hash_longs
from secure_bloom.paimon.physical_values import DAY_MICROS, divisor, is_bytes
from secure_bloom.parquet.logical_types import JULIAN_EPOCH, logical_type
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary, Entries

_INT96 = np.dtype([("nanos", "<i8"), ("days", "<i4")])


def column_hashes(leaf: Leaf, entries: Entries) -> NDArray[np.int64]:
    """The hash of each value of ``leaf``, shape (n,)."""
    if isinstance(entries, Binary):
        hashes = xxh64.hash_binary(entries.offsets, entries.data, prefix=entries.prefix)
        return hashes.view(np.int64)
    if is_bytes(leaf):
        return xxh64.hash_fixed(entries).view(np.int64)
    return hash_longs(_numbers(leaf, entries))


def _numbers(leaf: Leaf, entries: NDArray[Any]) -> NDArray[np.int64]:
    """The numbers that are hashed."""
    if leaf.type is Type.INT96:
        parts = entries.view(_INT96)
        micros: NDArray[np.int64] = parts["nanos"] // 1000
        micros += (parts["days"].astype(np.int64) - JULIAN_EPOCH) * DAY_MICROS
        return micros
    if entries.dtype.kind == "f":
        return _float_bits(entries)
    whole = divisor(logical_type(leaf.element))
    numbers = entries.astype(np.int64)
    return numbers // whole if whole > 1 else numbers


def _float_bits(values: NDArray[Any]) -> NDArray[np.int64]:
    width = values.dtype.itemsize
    bits = values.view(f"<i{width}").astype(np.int64)
    bits[np.isnan(values)] = float_bits(np.nan, width=width)
    return bits
