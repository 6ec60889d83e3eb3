"""The 64-bit hash of a value in Paimon's Bloom filter, for one value or for many.

Numbers are hashed by Thomas Wang's mix with arithmetic right shifts, text and bytes by XXH64 with
seed 0 (:mod:`secure_bloom.bloom.xxh64` hashes many at once).  Hashes are signed, as in Java.
Hashing one value does not need numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.bloom import xxh64
from secure_bloom.calling.arguments import checked_arguments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HALF, _WHOLE = 1 << 63, 1 << 64


@checked_arguments
def hash_long(number: int) -> int:
    """Return the hash of a signed 64-bit number."""
    # Wrapped after each step, so that `>>` keeps the sign as Java's does: Wang's own mix shifts
    # zeros in.
    k = signed(~number + (number << 21))
    k ^= k >> 24
    k = signed(k + (k << 3) + (k << 8))
    k ^= k >> 14
    k = signed(k + (k << 2) + (k << 4))
    k ^= k >> 28
    return signed(k + (k << 31))


def hash_bytes(value: bytes) -> int:
    """Return the hash of a text's UTF-8, or of bytes."""
    return signed(xxh64.hash_value(value))


def signed(number: int) -> int:
    """Return the number that the lowest 64 bits of ``number`` are in two's complement."""
    return (number + _HALF) % _WHOLE - _HALF


@checked_arguments
def hash_longs(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """:func:`hash_long` of each of a 1-D array of int64, in the same shape."""
    import numpy as np

    from secure_bloom.kernels import loops

    hashes = np.empty(len(numbers), np.int64)
    loops.paimon_hash(np.require(numbers, np.int64, ["C", "A"]), hashes)
    return hashes
