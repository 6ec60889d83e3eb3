"""XXH64 with seed 0 over arrays of values.  xxHash specification, "XXH64 Algorithm Description".

Every number is np.uint64: numba turns a mix of signed and unsigned into a float, and an unsigned
index needs no test for "from the end".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel

U64: TypeAlias = np.uint64
Words: TypeAlias = NDArray[Any]
Bytes: TypeAlias = NDArray[np.uint8]
Hashes: TypeAlias = NDArray[np.uint64]

PRIME64_1: Final = U64(0x9E3779B185EBCA87)
PRIME64_2: Final = U64(0xC2B2AE3D27D4EB4F)
PRIME64_3: Final = U64(0x165667B19E3779F9)
PRIME64_4: Final = U64(0x85EBCA77C2B2AE63)
PRIME64_5: Final = U64(0x27D4EB2F165667C5)
# The accumulators of step 1 for seed 0; "minus PRIME64_1" and the first sum wrap at 64 bits.
ACCUMULATOR_1: Final = U64(0x60EA27EEADC0B5D6)
ACCUMULATOR_4: Final = U64(0x61C8864E7A143579)


@kernel
def rotate(x: U64, bits: U64) -> U64:
    """Rotate ``x`` left."""
    return (x << bits) | (x >> (U64(64) - bits))


@kernel
def round64(accumulator: U64, lane: U64) -> U64:
    """Take one 8-byte lane into an accumulator (step 2)."""
    return rotate(accumulator + lane * PRIME64_2, U64(31)) * PRIME64_1


@kernel
def merge(h: U64, accumulator: U64) -> U64:
    """Take one accumulator into the hash (step 3)."""
    return (h ^ round64(U64(0), accumulator)) * PRIME64_1 + PRIME64_4


@kernel
def consume8(h: U64, lane: U64) -> U64:
    """Take 8 remaining bytes into the hash (step 5)."""
    return rotate(h ^ round64(U64(0), lane), U64(27)) * PRIME64_1 + PRIME64_4


@kernel
def consume4(h: U64, lane: U64) -> U64:
    """Take 4 remaining bytes into the hash (step 5)."""
    return rotate(h ^ (lane * PRIME64_1), U64(23)) * PRIME64_2 + PRIME64_3


@kernel
def consume1(h: U64, lane: U64) -> U64:
    """Take 1 remaining byte into the hash (step 5)."""
    return rotate(h ^ (lane * PRIME64_5), U64(11)) * PRIME64_1


@kernel
def avalanche(h: U64) -> U64:
    """Mix the bits a last time (step 6)."""
    h = (h ^ (h >> U64(33))) * PRIME64_2
    h = (h ^ (h >> U64(29))) * PRIME64_3
    return h ^ (h >> U64(32))


@kernel
def read4(data: Bytes, at: U64) -> U64:
    """Four bytes, little-endian; the compiler makes one load of them."""
    return (
        U64(data[at])
        | U64(data[at + U64(1)]) << U64(8)
        | U64(data[at + U64(2)]) << U64(16)
        | U64(data[at + U64(3)]) << U64(24)
    )


@kernel
def read8(data: Bytes, at: U64) -> U64:
    """Eight bytes, little-endian; the compiler makes one load of them."""
    return read4(data, at) | read4(data, at + U64(4)) << U64(32)


@kernel
def hash_stripes(data: Bytes, start: U64, end: U64) -> U64:
    """Steps 1 to 3 over the whole 32-byte stripes of ``data[start:end]``, of which there is one."""
    a, b, c, d = ACCUMULATOR_1, PRIME64_2, U64(0), ACCUMULATOR_4
    while start + U64(32) <= end:
        a = round64(a, read8(data, start))
        b = round64(b, read8(data, start + U64(8)))
        c = round64(c, read8(data, start + U64(16)))
        d = round64(d, read8(data, start + U64(24)))
        start += U64(32)
    h = rotate(a, U64(1)) + rotate(b, U64(7)) + rotate(c, U64(12)) + rotate(d, U64(18))
    return merge(merge(merge(merge(h, a), b), c), d)


@kernel
def hash_span(data: Bytes, start: U64, end: U64) -> U64:
    """The hash of ``data[start:end]``."""
    length = end - start
    h = PRIME64_5 if length < U64(32) else hash_stripes(data, start, end)
    h += length
    start += length & ~U64(31)
    while start + U64(8) <= end:
        h = consume8(h, read8(data, start))
        start += U64(8)
    if start + U64(4) <= end:
        h = consume4(h, read4(data, start))
        start += U64(4)
    while start < end:
        h = consume1(h, U64(data[start]))
        start += U64(1)
    return avalanche(h)


@kernel
def hash_spans(offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
    """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``; checked before."""
    for i in range(hashes.size):
        hashes[i] = hash_span(data, U64(offsets[i]) + U64(prefix), U64(offsets[i + 1]))


@kernel
def hash_4(words: Words, hashes: Hashes) -> None:
    """Hash values of one uint32; ``words`` is (n, 1)."""
    for i in range(hashes.size):
        hashes[i] = avalanche(consume4(PRIME64_5 + U64(4), U64(words[i, 0])))


@kernel
def hash_8(words: Words, hashes: Hashes) -> None:
    """Hash values of one uint64; ``words`` is (n, 1)."""
    for i in range(hashes.size):
        hashes[i] = avalanche(consume8(PRIME64_5 + U64(8), words[i, 0]))


@kernel
def hash_12(words: Words, hashes: Hashes) -> None:
    """Hash values of three uint32; ``words`` is (n, 3)."""
    for i in range(hashes.size):
        first = U64(words[i, 0]) | U64(words[i, 1]) << U64(32)
        h = consume8(PRIME64_5 + U64(12), first)
        hashes[i] = avalanche(consume4(h, U64(words[i, 2])))


@kernel
def hash_16(words: Words, hashes: Hashes) -> None:
    """Hash values of two uint64; ``words`` is (n, 2)."""
    for i in range(hashes.size):
        h = consume8(PRIME64_5 + U64(16), words[i, 0])
        hashes[i] = avalanche(consume8(h, words[i, 1]))


@kernel
def hash_rows(data: Bytes, hashes: Hashes) -> None:
    """Hash values of any width; ``data`` is (n, width)."""
    width = U64(data.shape[1])
    flat = data.reshape(-1)
    for i in range(hashes.size):
        hashes[i] = hash_span(flat, U64(i) * width, U64(i + 1) * width)


#: Width in bytes -> the word its values are read as, and the kernel; others are bytes, `hash_rows`.
FIXED_WIDTHS: Final[Mapping[int, tuple[type[np.generic], Callable[[Words, Hashes], None]]]] = {
    4: (np.uint32, hash_4),
    8: (np.uint64, hash_8),
    12: (np.uint32, hash_12),
    16: (np.uint64, hash_16),
}
