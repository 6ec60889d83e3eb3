"""Loops over arrays of values and hashes: in C, or in numpy without the extension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from secure_bloom.kernels import extension, numpy_loops
from secure_bloom.kernels.numpy_loops import DAMAGED, Blocks, Bytes, Hashes, Signed

__all__ = [
    "DAMAGED",
    "Sought",
    "byte_array_offsets",
    "check_hashes",
    "count_level",
    "delta_numbers",
    "find_values",
    "hash_each",
    "hash_rows",
    "hash_spans",
    "insert_hashes",
    "join_prefixes",
    "paimon_check",
    "paimon_hash",
    "paimon_insert",
    "pick_indices",
    "pick_spans",
    "unpack",
]

#: Bits of marks for each value sought: one of 32 other values is then looked up in vain.
_MARKS_PER_VALUE, _MIN_MARKS = 32, 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Values that are searched for, in PLAIN encoding without the length of a BYTE_ARRAY.

    A single value, ``only``, is compared as it is. Several values are compared by their hashes,
    in ascending order. ``marks`` has one bit set for the lowest bits of each hash.
    """

    only: bytes = field(repr=False)
    hashes: Hashes = field(repr=False)
    marks: Bytes = field(repr=False)

    @classmethod
    def of(cls, encodings: Sequence[bytes]) -> Sought:
        """Return the values with these encodings."""
        only = encodings[0] if len(encodings) == 1 else b""
        if only:
            return cls(only=only, hashes=np.empty(0, np.uint64), marks=np.zeros(1, np.uint8))
        hashes = np.unique(hash_each(encodings))
        count = max(_MIN_MARKS, 1 << (len(encodings) * _MARKS_PER_VALUE).bit_length())
        bits = np.zeros(count, np.bool_)
        bits[hashes & np.uint64(count - 1)] = True
        return cls(only=b"", hashes=hashes, marks=np.packbits(bits, bitorder="little"))


def hash_each(values: Sequence[bytes]) -> Hashes:
    """Return the hash of each value, to be looked up in many filters and pages."""
    if len(values) <= _FEW:
        return np.array([xxhash.xxh64_intdigest(value) for value in values], np.uint64)
    hashes, bounds = np.empty(len(values), np.uint64), np.zeros(len(values) + 1, np.int64)
    np.cumsum([*map(len, values)], out=bounds[1:])
    hash_spans(bounds, 0, np.frombuffer(b"".join(values), np.uint8), hashes)
    return hashes


#: So few values are hashed one by one.
_FEW = 16


def hash_rows(rows: Bytes, hashes: Hashes) -> None:
    """Store the hash of each row of ``rows``, an array of shape (n, width), in ``hashes``."""
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

    An offset points to the length field of a value. Returns the end, or ``DAMAGED`` if ``data``
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


def unpack(data: Bytes, bit_width: int, limit: int, numbers: NDArray[np.uint32]) -> int:
    """Store the first ``len(numbers)`` numbers of runs of the hybrid encoding.

    Returns their number, or ``DAMAGED`` if there are too few, or one is not below ``limit``.
    """
    return int((extension.native or numpy_loops).unpack(data, bit_width, limit, numbers))


def pick_indices(
    data: Bytes, bit_width: int, limit: int, count: int, ranks: Signed, picked: Signed
) -> int:
    """Store the numbers at ascending ``ranks``, of ``count`` numbers that :func:`unpack` reads.

    Returns ``DAMAGED`` where :func:`unpack` does.
    """
    pick = (extension.native or numpy_loops).pick_indices
    return int(pick(data, bit_width, limit, count, ranks, picked))


def pick_spans(data: Bytes, count: int, ranks: Signed, spans: Signed) -> int:
    """Store the starts and ends of some of ``count`` BYTE_ARRAYs, at ascending ``ranks``.

    Returns ``DAMAGED`` if the values are not all of the data.
    """
    return int((extension.native or numpy_loops).pick_spans(data, count, ranks, spans))


def find_values(data: Bytes, count: int, width: int, sought: Sought, found: Signed) -> int:
    """Store the positions of the PLAIN values that are sought. ``width`` 0 is for BYTE_ARRAYs.

    Returns how many there are, one more than ``found`` has room for, or ``DAMAGED`` if the values
    are not all of the data.
    """
    if extension.native is None:
        return numpy_loops.find_values(data, width, sought.only, sought.hashes, count, found)
    return int(
        extension.native.find_values(
            data, count, width, sought.only, sought.marks, sought.hashes, found
        )
    )


def delta_numbers(data: Bytes, start: int, widest: int, numbers: Signed) -> int:
    """Store the DELTA_BINARY_PACKED numbers that begin at ``start``, and return where they end.

    Returns ``DAMAGED`` unless there are as many as ``numbers`` has room for, with deltas of at most
    ``widest`` bits.  Sums are modulo 2^64.
    """
    return int((extension.native or numpy_loops).delta_numbers(data, start, widest, numbers))


def join_prefixes(
    prefixes: Signed, bounds: Signed, suffixes: Bytes, ranks: Signed, ends: Signed, into: Bytes
) -> int:
    """Copy the values at ``ranks`` into ``into``, and store in ``ends`` where each of them ends.

    Value ``i`` is the first ``prefixes[i]`` bytes of the value before it, and then
    ``suffixes[bounds[i]:bounds[i + 1]]``.  Returns the end of the last, or ``DAMAGED``.
    """
    join = (extension.native or numpy_loops).join_prefixes
    return int(join(prefixes, bounds, suffixes, ranks, ends, into))


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
