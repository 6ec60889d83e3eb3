"""Record keys as bytes, one or many, and Hudi's two hashes of a single key, in plain Python.

A key is UTF-8, never empty.  Java compares strings by UTF-16 code units, so a character above
U+FFFF comes before the characters U+E000 to U+FFFF.  In UTF-8 the latter start with the bytes EE
and EF.  If these two bytes are moved after all others, comparing bytes gives the order of Java's
strings.

Hadoop's ``MurmurHash`` is MurmurHash2, but the last one to three bytes are treated otherwise: they
are signed, and the very last one is the lowest.  ``JenkinsHash`` is lookup3's ``hashlittle``.  Each
position comes from the hash before it:

    seed = 0; k times: seed = hash(key, seed), position = |seed rem bits|

where ``seed`` is signed and the remainder is truncated, as in Java.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: UTF-8 never has the bytes FE and FF, so the way back is safe too.
TO_JAVA_ORDER = bytes.maketrans(b"\xee\xef", b"\xfe\xff")
FROM_JAVA_ORDER = bytes.maketrans(b"\xfe\xff", b"\xee\xef")


def key_bytes(key: str) -> bytes:
    """Return the bytes to hash.

    Raises PolicyError, without the key, for a key that Hudi refuses.
    """
    if not isinstance(key, str):
        raise PolicyError(f"a record key is of type {type(key).__name__}, wanted text")
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise PolicyError("a record key is not Unicode text: a surrogate is unpaired") from None
    if not encoded:
        raise PolicyError("a record key is empty, which Hudi refuses")
    return encoded


def keys_bytes(keys: Iterable[str]) -> list[bytes]:
    """Return :func:`key_bytes` of each key. Raises PolicyError for a single text."""
    if isinstance(keys, str):
        raise PolicyError("record keys are one text, wanted several", hint="write [key]")
    if not hasattr(keys, "__iter__"):
        raise PolicyError(f"record keys are of type {type(keys).__name__}, wanted several texts")
    return [key_bytes(key) for key in keys]


def java_order(key: bytes) -> bytes:
    """Return bytes that sort as the keys sort as Java strings."""
    return key.translate(TO_JAVA_ORDER)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PackedKeys:
    """Many keys, in Arrow's layout: key ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    ``offsets`` are int64, ``data`` is uint8; they come from :meth:`of` or from Arrow.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if (self.offsets[1:] <= self.offsets[:-1]).any():
            raise PolicyError("a record key is empty, which Hudi refuses")

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> PackedKeys:
        """Return the packed form of the keys."""
        import numpy as np

        every = list(keys)
        offsets = np.fromiter(accumulate(map(len, every), initial=0), np.int64, len(every) + 1)
        return cls(offsets=offsets, data=np.frombuffer(b"".join(every), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def each(self) -> Iterator[bytes]:
        """Yield the keys one by one."""
        content = self.data.tobytes()
        return (content[start:end] for start, end in pairwise(self.offsets.tolist()))

    def part(self, start: int, stop: int) -> PackedKeys:
        """Return keys ``start`` to ``stop`` without copying them."""
        return PackedKeys(offsets=self.offsets[start : stop + 1], data=self.data)


_MASK = 0xFFFFFFFF
#: The multiplier of MurmurHash2.
_M = 0x5BD1E995
#: The start of lookup3.
_GOLDEN = 0xDEADBEEF


class HashType(enum.IntEnum):
    """The hash of a filter, as its header numbers it."""

    JENKINS = 0
    MURMUR = 1


def hash_key(hash_type: HashType, key: bytes, seed: int) -> int:
    """Return the hash of ``key``, 0 <= hash < 2^32. ``seed`` counts modulo 2^32."""
    return _HASHES[hash_type](key, seed & _MASK)


def positions(hash_type: HashType, key: bytes, num_hashes: int, vector_size: int) -> Iterator[int]:
    """Yield the ``num_hashes`` positions of ``key`` in a row of ``vector_size`` bits."""
    h = 0
    for _ in range(num_hashes):
        h = hash_key(hash_type, key, h)
        # The smaller of the two is |seed|, for a seed that Java reads as signed.
        yield min(h, (1 << 32) - h) % vector_size


def _murmur(key: bytes, seed: int) -> int:
    h = seed ^ len(key)
    whole = len(key) & ~3
    # Words are little-endian in both hashes, though all that the filter stores is big-endian.
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        k = k * _M & _MASK
        h = (h * _M ^ (k ^ k >> 24) * _M) & _MASK
    rest = key[whole:]
    if rest:
        # `b` is signed, as Java's bytes are; the last byte is not shifted, unlike in MurmurHash2.
        for place, byte in enumerate(reversed(struct.unpack(f"{len(rest)}b", rest))):
            h ^= byte << 8 * place
        h = h * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def _jenkins(key: bytes, seed: int) -> int:
    a = b = c = (_GOLDEN + len(key) + seed) & _MASK
    # lookup3 mixes nothing where there is nothing.
    if not key:
        return c
    # The last block, of 1 to 12 bytes, is filled with zeros and mixed in another way.
    *blocks, last = struct.iter_unpack("<III", key + bytes(-len(key) % 12))
    for x, y, z in blocks:
        a, b, c = _mix(a + x & _MASK, b + y & _MASK, c + z & _MASK)
    a, b, c = (n + w & _MASK for n, w in zip((a, b, c), last, strict=True))
    return _final(a, b, c)


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for first, second, third in ((4, 6, 8), (16, 19, 4)):
        a, c = (a - c & _MASK) ^ _rotate(c, first), c + b & _MASK
        b, a = (b - a & _MASK) ^ _rotate(a, second), a + c & _MASK
        c, b = (c - b & _MASK) ^ _rotate(b, third), b + a & _MASK
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    c = (c ^ b) - _rotate(b, 14) & _MASK
    a = (a ^ c) - _rotate(c, 11) & _MASK
    b = (b ^ a) - _rotate(a, 25) & _MASK
    c = (c ^ b) - _rotate(b, 16) & _MASK
    a = (a ^ c) - _rotate(c, 4) & _MASK
    b = (b ^ a) - _rotate(a, 14) & _MASK
    return (c ^ b) - _rotate(b, 24) & _MASK


_HASHES: dict[HashType, Callable[[bytes, int], int]] = {
    HashType.JENKINS: _jenkins,
    HashType.MURMUR: _murmur,
}
