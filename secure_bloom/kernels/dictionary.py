"""Byte arrays of pages that refer to a dictionary, looked up and set one behind the other.

Parquet, "Encodings": RLE_DICTIONARY.  Every number comes from the file, so each is checked against
the bytes at hand.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel
from secure_bloom.kernels.plain import LENGTH_SIZE, read_bits, read_run
from secure_bloom.kernels.xxh64 import read4

U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Places: TypeAlias = NDArray[np.uint32]
Offsets: TypeAlias = NDArray[np.int32]

#: The widest index that the format knows, in bits.
WIDEST: Final = 32


@kernel
def look_up(data: Bytes, entries: NDArray[np.int64], places: Places) -> bool:
    """Enter the place of the entry of each value; False unless ``data`` has an index for each.

    ``data`` is the bit width of the indices, one byte, and runs of the hybrid encoding.
    ``entries`` has the place of every entry, and the end of the last.
    """
    if data.size == 0 or data[0] > WIDEST:
        return False
    width, at, done = U64(data[0]), U64(1), U64(0)
    limit = min(U64(entries.size) - U64(1), U64(1) << width)
    while done < U64(places.size):
        is_packed, count, start, at = read_run(data, at, width, U64(places.size) - done)
        if at == U64(0):
            return False
        # Packed, an index follows the other; else all values have the one at the start, in bytes.
        step, bits = (width, width) if is_packed else (U64(0), (width + U64(7)) & ~U64(7))
        bit = start << U64(3)
        for i in range(done, done + count):
            index = read_bits(data, bit, bits)
            if index >= limit:
                return False
            places[i] = entries[index]
            bit += step
        done += count
    return True


@kernel
def enter_ends(data: Bytes, places: Places, start: int, ends: Offsets) -> np.int64:
    """Enter where each value will end if the first starts at ``start``; the end of the last.

    ``places`` are those of values in ``data``, each behind its length; nobody checks them here.
    Ends that are too large for their type are not right; the answer is.
    """
    end = np.int64(start)
    for i in range(places.size):
        end += np.int64(read4(data, U64(places[i])))
        ends[i] = np.int32(end)
    return end


@kernel
def copy_values(data: Bytes, places: Places, start: int, into: Bytes) -> np.int64:
    """Copy each value, without its length, behind the one before it; the end of the last."""
    at = U64(start)
    for i in range(places.size):
        place = U64(places[i])
        length = read4(data, place)
        place += U64(LENGTH_SIZE)
        for j in range(length):
            into[at + U64(j)] = data[place + U64(j)]
        at += length
    return np.int64(at)
