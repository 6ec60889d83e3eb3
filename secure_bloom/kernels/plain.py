"""Find the values of a flat PLAIN page: count its levels, and follow the lengths of byte arrays.

Parquet, "Encodings": PLAIN, and the RLE / bit-packing hybrid of levels.  Every number comes from
the page, so each is checked against the bytes at hand.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import inlined, kernel
from secure_bloom.kernels.xxh64 import read4, read8

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
def read_run(data: Bytes, at: U64, width: U64, left: U64) -> tuple[bool, U64, U64, U64]:
    """The run at ``at`` of numbers of ``width`` bits, of which ``left`` are wanted.

    Whether it is bit-packed, how many of the wanted numbers it has, where its bytes start, and its
    end: 0 if it is damaged.
    """
    header, start = read_varint(data, at)
    run, is_packed = header >> U64(1), header & U64(1) == U64(1)
    count = min(run * U64(8) if is_packed else run, left)
    bits = count * width if is_packed else (width + U64(7)) & ~U64(7)
    if start == U64(0) or run == U64(0) or (U64(data.size) - start) * U64(8) < bits:
        return is_packed, U64(0), U64(0), U64(0)
    # The end of a last group that is not wanted whole is not right, and nobody looks for it.
    return is_packed, count, start, start + (bits >> U64(3))


@inlined
def read_bits(data: Bytes, bit: U64, width: U64) -> U64:
    """The number of at most 32 bits that begins at a bit of the data."""
    at, size, mask = bit >> U64(3), U64(data.size), (U64(1) << width) - U64(1)
    # With a return of its own, this takes a tenth of the time.
    if at + U64(8) <= size:
        return (read8(data, at) >> (bit & U64(7))) & mask
    word = U64(0)
    for i in range(size - at):
        word |= U64(data[at + U64(i)]) << U64(8) * U64(i)
    return (word >> (bit & U64(7))) & mask


@kernel
def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> np.int64:
    """How many of the first ``values`` levels in ``data`` are ``wanted``; ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    width, found, at, left = U64(bit_width), U64(0), U64(0), U64(values)
    while left > U64(0):
        is_packed, count, start, at = read_run(data, at, width, left)
        if at == U64(0):
            return DAMAGED
        if is_packed:
            bit = start << U64(3)
            for _ in range(count):
                found += U64(read_bits(data, bit, width) == U64(wanted))
                bit += width
        elif U64(data[start]) == U64(wanted):
            found += count
        left -= count
    return np.int64(found)
