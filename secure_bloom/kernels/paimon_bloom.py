"""Hashing numbers for a Paimon Bloom filter, inserting into one and checking it.

The filter is BloomFilter64 of Apache Paimon: bit ``i`` is bit ``i & 7`` of byte ``i >> 3``, and a
hash's positions are steps of its upper half from its lower half (Kirsch and Mitzenmacher).
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel

U32: TypeAlias = np.uint32
I64: TypeAlias = np.int64
Bits: TypeAlias = NDArray[np.uint8]
Hashes: TypeAlias = NDArray[np.int64]

SIGN: Final = U32(0x80000000)


@kernel
def mix(k: I64) -> I64:
    """Thomas Wang's 64-bit mix; as in Java's ``>>``, right shifts keep the sign."""
    k = ~k + (k << I64(21))
    k ^= k >> I64(24)
    k = k + (k << I64(3)) + (k << I64(8))
    k ^= k >> I64(14)
    k = k + (k << I64(2)) + (k << I64(4))
    k ^= k >> I64(28)
    return k + (k << I64(31))


@kernel
def hash_longs(numbers: Hashes, hashes: Hashes) -> None:
    """Hash every number."""
    for i in range(hashes.size):
        hashes[i] = mix(numbers[i])


@kernel
def position(step: U32, bit_count: U32) -> U32:
    """The bit of a step; a step that is negative as a signed number is inverted first."""
    return (~step if step & SIGN else step) % bit_count


@kernel
def insert_hashes(bits: Bits, hash_functions: U32, hashes: Hashes) -> None:
    """Set the positions of every hash; there is at least one byte."""
    bit_count = U32(bits.size * 8)
    for h in hashes:
        step, stride = U32(h), U32(h >> I64(32))
        for _ in range(hash_functions):
            step = U32(step + stride)
            p = position(step, bit_count)
            bits[p >> U32(3)] |= np.uint8(U32(1) << (p & U32(7)))


@kernel
def check_hashes(bits: Bits, hash_functions: U32, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether all positions of ``hashes[i]`` are set.

    All are checked, even after one that is not set: a branch that the processor cannot predict
    costs more than the rest of the checks.
    """
    bit_count = U32(bits.size * 8)
    for i in range(hashes.size):
        step, stride = U32(hashes[i]), U32(hashes[i] >> I64(32))
        every = U32(1)
        for _ in range(hash_functions):
            step = U32(step + stride)
            p = position(step, bit_count)
            every &= U32(bits[p >> U32(3)]) >> (p & U32(7))
        found[i] = (every & U32(1)) != U32(0)
