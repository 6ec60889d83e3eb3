"""Look for a few probe values among the PLAIN values of a page, by fingerprints.

A fingerprint is 64 bits made of a value's bytes and length.  It is private to this program and
cheaper than a good hash: two multiplications for every 16 bytes.  Different values may share one,
so a match is a "maybe" and only "none" is certain.  Every number comes from the page, so each is
checked against the bytes at hand.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel
from secure_bloom.kernels.plain import DAMAGED, LENGTH_SIZE
from secure_bloom.kernels.xxh64 import PRIME64_1, PRIME64_2, PRIME64_5, read4, read8

U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Fingerprints: TypeAlias = NDArray[np.uint64]

#: Answers of ``look_for``, beside ``DAMAGED``.
NONE: Final = np.int64(0)
SOME: Final = np.int64(1)


@kernel
def fingerprint(data: Bytes, start: U64, end: U64) -> U64:
    """The fingerprint of ``data[start:end]``."""
    h = (end - start) * PRIME64_5
    while start + U64(8) <= end:
        h = (h ^ read8(data, start)) * PRIME64_1
        h ^= h >> U64(32)
        start += U64(8)
    rest = U64(0)
    if start + U64(4) <= end:
        rest = read4(data, start)
        start += U64(4)
    while start < end:
        rest = rest << U64(8) | U64(data[start])
        start += U64(1)
    h = (h ^ rest) * PRIME64_2
    return h ^ (h >> U64(32))


@kernel
def fingerprints(offsets: NDArray[np.int64], data: Bytes, found: Fingerprints) -> None:
    """The fingerprint of each ``data[offsets[i]:offsets[i + 1]]``; the offsets ascend within it."""
    for i in range(found.size):
        found[i] = fingerprint(data, U64(offsets[i]), U64(offsets[i + 1]))


@kernel
def look_for(data: Bytes, count: int, width: int, marks: Bytes, probes: Fingerprints) -> np.int64:
    """Whether one of the ``count`` PLAIN values in ``data`` has a fingerprint of ``probes``.

    ``DAMAGED`` where they are not all of the data.

    ``width`` is that of every value, or 0 for BYTE_ARRAYs.  ``probes`` ascends, and of each the
    lowest bits name a bit of ``marks`` that is set; the size of ``marks`` is a power of two.
    """
    size, at = U64(data.size), U64(0)
    last = U64(marks.size) * U64(8) - U64(1)
    for _ in range(count):
        length = U64(width)
        if width == 0:
            if size - at < U64(LENGTH_SIZE):
                return DAMAGED
            length = read4(data, at)
            at += U64(LENGTH_SIZE)
        if size - at < length:
            return DAMAGED
        h = fingerprint(data, at, at + length)
        at += length
        place = h & last
        if (U64(marks[place >> U64(3)]) >> (place & U64(7))) & U64(1):
            nearest = np.searchsorted(probes, h)
            if nearest < probes.size and probes[nearest] == h:
                return SOME
    # Values behind the last that is counted would never be looked at.
    return NONE if at == size else DAMAGED
