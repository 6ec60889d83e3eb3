"""Inserting record keys into Hudi's Bloom filters and checking them there, over arrays of keys.

The hashes are those of Hadoop's ``org.apache.hadoop.util.hash``.  A key's positions come one from
the other, so a check stops at the first bit that is not set.  numba widens every sum and product
of 32-bit numbers: each is cast back, which costs nothing.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel

U32: TypeAlias = np.uint32
U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.int64]

M: Final = U32(0x5BD1E995)
GOLDEN: Final = U32(0xDEADBEEF)
SIGN: Final = U32(0x80)


@kernel
def read4(data: Bytes, at: U64) -> U32:
    """Four bytes, little-endian; the compiler makes one load of them."""
    return U32(
        U32(data[at])
        | U32(data[at + U64(1)]) << U32(8)
        | U32(data[at + U64(2)]) << U32(16)
        | U32(data[at + U64(3)]) << U32(24)
    )


@kernel
def signed(byte: U32) -> U32:
    """One byte as Java widens it: its sign fills all bits above."""
    return U32((byte ^ SIGN) - SIGN)


@kernel
def murmur(data: Bytes, start: U64, end: U64, seed: U32) -> U32:
    """MurmurHash2 of ``data[start:end]``, whose last bytes Hadoop takes signed and backwards."""
    h = U32(seed ^ U32(end - start))
    while start + U64(4) <= end:
        k = U32(read4(data, start) * M)
        k = U32((k ^ (k >> U32(24))) * M)
        h = U32(h * M) ^ k
        start += U64(4)
    if start < end:
        if start + U64(3) == end:
            h ^= U32(signed(U32(data[end - U64(3)])) << U32(16))
        if start + U64(2) <= end:
            h ^= U32(signed(U32(data[end - U64(2)])) << U32(8))
        h = U32((h ^ signed(U32(data[end - U64(1)]))) * M)
    h = U32((h ^ (h >> U32(13))) * M)
    return U32(h ^ (h >> U32(15)))


@kernel
def rotate(x: U32, bits: U32) -> U32:
    """Rotate ``x`` left."""
    return U32(x << bits) | (x >> (U32(32) - bits))


@kernel
def read_tail(data: Bytes, start: U64, end: U64) -> U32:
    """Up to four bytes from ``start``, little-endian, zeros behind ``end``."""
    word = U32(0)
    for i in range(U64(4)):
        if start + U64(i) < end:
            word |= U32(U32(data[start + U64(i)]) << U32(8 * i))
    return word


@kernel
def jenkins(data: Bytes, start: U64, end: U64, seed: U32) -> U32:
    """Bob Jenkins' lookup3, ``hashlittle``, of ``data[start:end]``."""
    a = b = c = U32(GOLDEN + U32(end - start) + seed)
    if start == end:
        return c
    while start + U64(12) < end:
        a = U32(a + read4(data, start))
        b = U32(b + read4(data, start + U64(4)))
        c = U32(c + read4(data, start + U64(8)))
        a, c = U32(a - c) ^ rotate(c, U32(4)), U32(c + b)
        b, a = U32(b - a) ^ rotate(a, U32(6)), U32(a + c)
        c, b = U32(c - b) ^ rotate(b, U32(8)), U32(b + a)
        a, c = U32(a - c) ^ rotate(c, U32(16)), U32(c + b)
        b, a = U32(b - a) ^ rotate(a, U32(19)), U32(a + c)
        c, b = U32(c - b) ^ rotate(b, U32(4)), U32(b + a)
        start += U64(12)
    a = U32(a + read_tail(data, start, end))
    b = U32(b + read_tail(data, start + U64(4), end))
    c = U32(c + read_tail(data, start + U64(8), end))
    c = U32((c ^ b) - rotate(b, U32(14)))
    a = U32((a ^ c) - rotate(c, U32(11)))
    b = U32((b ^ a) - rotate(a, U32(25)))
    c = U32((c ^ b) - rotate(b, U32(16)))
    a = U32((a ^ c) - rotate(c, U32(4)))
    b = U32((b ^ a) - rotate(a, U32(14)))
    return U32((c ^ b) - rotate(b, U32(24)))


@kernel
def hash_key(is_murmur: bool, data: Bytes, start: U64, end: U64, seed: U32) -> U32:
    """The hash of one key, of either kind."""
    if is_murmur:
        return murmur(data, start, end, seed)
    return jenkins(data, start, end, seed)


@kernel
def position(h: U32, vector_size: U32) -> U32:
    """The bit of the hash: the absolute value of the remainder of a signed number."""
    magnitude = h if h < U32(0x80000000) else U32(U32(0) - h)
    return U32(magnitude % vector_size)


@kernel
def insert_keys(
    rows: Bytes,
    vector_size: U32,
    num_hashes: int,
    is_murmur: bool,
    offsets: Offsets,
    data: Bytes,
    row: int,
    stride: int,
) -> None:
    """Insert key ``i`` into row ``row + i * stride``, going round; ``rows`` is (rows, bytes)."""
    for i in range(offsets.size - 1):
        start, end = U64(offsets[i]), U64(offsets[i + 1])
        h = U32(0)
        for _ in range(num_hashes):
            h = hash_key(is_murmur, data, start, end, h)
            bit = position(h, vector_size)
            rows[row, bit >> U32(3)] |= np.uint8(U32(1) << (bit & U32(7)))
        row = (row + stride) % rows.shape[0]


@kernel
def check_keys(
    rows: Bytes,
    vector_size: U32,
    num_hashes: int,
    is_murmur: bool,
    offsets: Offsets,
    data: Bytes,
    found: NDArray[np.bool_],
) -> None:
    """Set ``found[i]`` to whether any row has all bits of key ``i``.

    The positions of a key are computed as far as some row needs them, and once for all rows.
    """
    positions = np.empty(num_hashes, np.uint32)
    for i in range(found.size):
        start, end = U64(offsets[i]), U64(offsets[i + 1])
        known = 0
        h = U32(0)
        found[i] = False
        for row in range(rows.shape[0]):
            n = 0
            while n < num_hashes:
                if n == known:
                    h = hash_key(is_murmur, data, start, end, h)
                    positions[n] = position(h, vector_size)
                    known += 1
                bit = positions[n]
                if not rows[row, bit >> U32(3)] >> (bit & U32(7)) & U32(1):
                    break
                n += 1
            if n == num_hashes:
                found[i] = True
                break
