"""Check Bloom filters in the bytes of a plain file, many filters in one call.

BloomFilterHeader | bitset                                                   BloomFilter.md
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import I64, brief_kernel, kernel
from secure_bloom.kernels.fields import I32_TYPE, Bytes, Numbers, read_varint, signed
from secure_bloom.kernels.salt import SALT
from secure_bloom.kernels.sbbf import block_index
from secure_bloom.kernels.xxh64 import read4

U64: TypeAlias = np.uint64
Hashes: TypeAlias = NDArray[np.uint64]

BLOCK: Final = 32
#: A header starts with its first field, ``numBytes``.
NUM_BYTES: Final = 1 << 4 | I32_TYPE
#: Answers for a filter.  UNUSUAL: its header has another form, so Python code decodes it.
NONE: Final = 0
SOME: Final = 1
UNUSUAL: Final = 2


@kernel
def bitset_start(data: Bytes, start: int, end: int, rest: Bytes) -> int:
    """The offset of the bitset behind a header that ends in ``rest``; -1 for any other header."""
    if end - start < 2 + rest.size or data[start] != NUM_BYTES:
        return -1
    number, at = read_varint(data, start + 1)
    size = signed(number)
    if at < 0 or size <= 0 or size % BLOCK or at + rest.size + size != end:
        return -1
    for i in range(rest.size):
        if data[at + i] != rest[i]:
            return -1
    return at + rest.size


@kernel
def may_have(data: Bytes, start: int, end: int, h: U64) -> bool:
    """Whether the bitset ``data[start:end]`` may have the hash (block_check)."""
    block = block_index(h, U64((end - start) // BLOCK))
    at, low = U64(start) + block * U64(BLOCK), np.uint32(h)
    for i in range(8):
        bit = U64(np.uint32(low * np.uint32(SALT[i])) >> np.uint32(27))
        if not (read4(data, at + U64(4 * i)) >> bit) & U64(1):
            return False
    return True


@brief_kernel
def span(places: Numbers, size: int) -> tuple[int, int, int]:
    """The extent of all filters, start and end, and their total bytes; -1 if one leaves the file.

    ``places`` has rows of offset and length.
    """
    start, end, total = I64(size), 0, 0
    for i in range(places.shape[0]):
        offset, length = places[i, 0], places[i, 1]
        if offset < 0 or length <= 0 or offset > size or length > size - offset:
            return 0, 0, -1
        start, end, total = min(start, offset), max(end, offset + length), total + length
    return start, end, total


@brief_kernel
def ask(
    data: Bytes,
    base: int,
    places: Numbers,
    rest: Bytes,
    hashes: Hashes,
    runs: Numbers,
    answers: Bytes,
) -> None:
    """Answer for each filter whether it may have one of a run of hashes.

    ``data`` is the file from ``base`` on, with all filters in it.  ``places`` has rows of offset,
    length; ``runs`` has rows of start, end in ``hashes``.  ``rest`` is a header without its first
    field.
    """
    for i in range(places.shape[0]):
        offset = places[i, 0] - base
        end = offset + places[i, 1]
        start = bitset_start(data, offset, end, rest)
        answers[i] = NONE if start >= 0 else UNUSUAL
        if start >= 0:
            for j in range(runs[i, 0], runs[i, 1]):
                if may_have(data, start, end, hashes[j]):
                    answers[i] = SOME
                    break
