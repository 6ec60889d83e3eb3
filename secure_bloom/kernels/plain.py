"""Find the values of a flat PLAIN page: count its levels, and follow the lengths of byte arrays.

Parquet, "Encodings": PLAIN, and the RLE / bit-packing hybrid of levels.  Every number comes from
the page, so each is checked against the bytes at hand.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel
from secure_bloom.kernels.xxh64 import read4

U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]

#: The answer for malformed bytes.
DAMAGED: Final = np.int64(-1)
LENGTH_SIZE: Final = 4


@kernel
def byte_array_offsets(data: Bytes, offsets: NDArray[np.int64]) -> np.int64:
    """Enter the offset of each of ``len(offsets) - 1`` BYTE_ARRAYs, and the end of the last.

    An offset is that of the length before the bytes.  Returns the end, or ``DAMAGED`` if they do
    not all fit ``data``.
    """
    size, at = U64(data.size), U64(0)
    for i in range(offsets.size - 1):
        offsets[i] = np.int64(at)
        if size - at < U64(LENGTH_SIZE):
            return DAMAGED
        length = read4(data, at)
        at += U64(LENGTH_SIZE)
        if size - at < length:
            return DAMAGED
        at += length
    offsets[offsets.size - 1] = np.int64(at)
    return np.int64(at)


@kernel
def read_varint(data: Bytes, at: U64) -> tuple[U64, U64]:
    """The varint of at most five bytes at ``at``, and its end: 0 if it is longer."""
    number = U64(0)
    for i in range(min(U64(5), U64(data.size) - at)):
        byte = U64(data[at + U64(i)])
        number |= (byte & U64(0x7F)) << U64(7) * U64(i)
        if byte < U64(0x80):
            return number, at + U64(i) + U64(1)
    return number, U64(0)


@kernel
def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> np.int64:
    """How many of the first ``values`` levels in ``data`` are ``wanted``; ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    width, found, at, left = U64(bit_width), U64(0), U64(0), U64(values)
    while left > U64(0):
        header, at = read_varint(data, at)
        if at == U64(0) or at >= U64(data.size):
            return DAMAGED
        run = header >> U64(1)
        if header & U64(1):
            count = min(run * U64(8), left)
            if (U64(data.size) - at) * U64(8) < count * width:
                return DAMAGED
            found += count_packed(data, at, width, U64(wanted), count)
            at = min(at + run * width, U64(data.size))
        else:
            count = min(run, left)
            found += count if U64(data[at]) == U64(wanted) else U64(0)
            at += U64(1)
        left -= count
    return np.int64(found)


@kernel
def count_packed(data: Bytes, start: U64, width: U64, wanted: U64, count: U64) -> U64:
    """How many of ``count`` levels, bit-packed from byte ``start`` on, are ``wanted``."""
    found, mask = U64(0), (U64(1) << width) - U64(1)
    for i in range(count):
        bit = U64(i) * width
        at = start + (bit >> U64(3))
        word = U64(data[at])
        if (bit & U64(7)) + width > U64(8):
            word |= U64(data[at + U64(1)]) << U64(8)
        if (word >> (bit & U64(7))) & mask == wanted:
            found += U64(1)
    return found
