"""Find integers that a Spark shuffle sends to chosen partitions.

`repartition(n, column)` sends a row to the partition `pmod(hash(column), n)`.  `hash` of an INT is
Murmur3_x86_32 with seed 42, the same in each Spark since 2.0.  So a key can be chosen for each
partition, and each task gets exactly the rows that were planned for it.  Spark 4.1 has
`repartitionById`; older versions have no other way.
"""

from __future__ import annotations

import functools

_SEED = 42
_BITS = 0xFFFFFFFF


@functools.lru_cache(maxsize=16)
def shuffle_keys(partitions: int) -> tuple[int, ...]:
    """Return one key for each of ``partitions`` partitions."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(hash_of_int(key) % partitions, key)
        key += 1
    return tuple(found[partition] for partition in range(partitions))


def hash_of_int(value: int) -> int:
    """Return what Spark's `hash(value)` of an INT returns: signed, 32 bits."""
    word = _rotated(value * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    mixed = _rotated(_SEED ^ word, 13) * 5 + 0xE6546B64 & _BITS
    mixed ^= 4  # the length of an INT in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def _rotated(word: int, bits: int) -> int:
    return word << bits & _BITS | word >> 32 - bits
