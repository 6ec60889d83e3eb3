"""Loops over arrays of values and hashes: in C, or in numpy without the extension."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels import extension, numpy_loops
from secure_bloom.kernels.numpy_loops import DAMAGED, Blocks, Bytes, Hashes, Signed

__all__ = [
    "DAMAGED",
    "byte_array_offsets",
    "check_hashes",
    "count_level",
    "hash_rows",
    "hash_spans",
    "insert_hashes",
    "paimon_check",
    "paimon_hash",
    "paimon_insert",
]


def hash_rows(rows: Bytes, hashes: Hashes) -> None:
    """Hash the rows of ``rows``, which is (n, width)."""
    if extension.native is None:
        numpy_loops.hash_rows(rows, hashes)
    else:
        extension.native.hash_rows(_in_one_piece(rows), rows.shape[1], hashes)


def hash_spans(offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
    """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``. Checks no offset."""
    if extension.native is None:
        numpy_loops.hash_spans(offsets, prefix, data, hashes)
    else:
        starts = np.require(offsets, np.int64, ["C", "A"])
        extension.native.hash_spans(starts, prefix, _in_one_piece(data), hashes)


def insert_hashes(blocks: Blocks, hashes: Hashes) -> None:
    """Insert every hash. ``blocks`` is (z, 8) in C order, z >= 1."""
    (extension.native or numpy_loops).insert_hashes(blocks, hashes)


def check_hashes(blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
    (extension.native or numpy_loops).check_hashes(blocks, hashes, found)


def byte_array_offsets(data: Bytes, offsets: NDArray[np.int64]) -> int:
    """Store the offset of each of ``len(offsets) - 1`` BYTE_ARRAYs, and the end of the last.

    The offset of a value is that of its length field.  Returns the end, or ``DAMAGED`` if ``data``
    is too short for all values.
    """
    if extension.native is None:
        return numpy_loops.byte_array_offsets(data, offsets)
    return int(extension.native.byte_array_offsets(data, len(offsets) - 1, offsets))


def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> int:
    """Return how many of the first ``values`` levels equal ``wanted``, or ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    return int((extension.native or numpy_loops).count_level(data, bit_width, wanted, values))


def paimon_hash(numbers: Signed, hashes: Signed) -> None:
    """Store the hash of every number, as a Bloom filter of Paimon needs it."""
    (extension.native or numpy_loops).paimon_hash(numbers, hashes)


def paimon_insert(bits: Bytes, functions: int, hashes: Signed) -> None:
    """Set the bits of every hash. ``bits`` has at least one byte."""
    (extension.native or numpy_loops).paimon_insert(bits, functions, hashes)


def paimon_check(bits: Bytes, functions: int, hashes: Signed, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether all bits of ``hashes[i]`` are set."""
    (extension.native or numpy_loops).paimon_check(bits, functions, hashes, found)


def _in_one_piece(array: NDArray[Any]) -> NDArray[Any]:
    return np.require(array, requirements=["C", "A"])
