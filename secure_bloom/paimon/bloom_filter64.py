"""BloomFilter64, the body of Paimon's ``bloom-filter`` index.

    k (4 bytes, BE: the number of hash functions) | bit set

Bit ``i`` is bit ``i & 7`` of byte ``i >> 3``.  A hash has the halves ``h1`` (low) and ``h2``
(high).  Its positions for ``i = 1..k`` are ``c % bits``, with ``c = h1 + i * h2`` in signed 32
bits, or the complement of that if it is negative.  Single hashes are handled without numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import FormatError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNT_BYTES: Final = 4
#: Java counts the bits in a signed 32-bit integer.
MAX_BIT_COUNT: Final = (1 << 31) - 1
#: Sizing gives 1,076 at most, for one item and the smallest double.  A file that names more would
#: only keep a reader busy.
MAX_HASH_FUNCTIONS: Final = 1100

_LN2 = math.log(2)
#: Up to this size false positives are measured: up to here, the formula for independent positions
#: is wrong by more than a tenth.
_FEW_BITS: Final = 2048
_SAMPLED: Final = 20_000


@cache
def _sample() -> NDArray[np.int64]:
    """Return the fixed hashes (SplitMix64) with which false positives are measured."""
    import numpy as np

    mixed = np.arange(1, _SAMPLED + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed.view(np.int64)


@checked_arguments
def sizing(items: int, fpp: float) -> tuple[int, int]:
    """Return Paimon's number of bits, and of hash functions, for ``items`` values at ``fpp``.

    Raises PolicyError for negative items, an fpp outside (0, 1], and more bits than Java can count.
    """
    if items < 0:
        raise PolicyError(f"items is {items}, it cannot be negative")
    if not 0.0 < fpp <= 1.0:
        raise PolicyError(f"fpp is {fpp}, it must lie between 0 and 1")
    # `int` cuts and does not round, as Java's cast does; beyond the largest int the cast stays
    # there.
    wanted = min(int(-items * math.log(fpp) / (_LN2 * _LN2)), MAX_BIT_COUNT)
    # Paimon adds a whole byte where none is needed, and an index must have its size.
    bits = wanted + 8 - wanted % 8
    if bits > MAX_BIT_COUNT:
        raise PolicyError(
            f"{items} items at an fpp of {fpp} need more than {MAX_BIT_COUNT} bits",
            hint="allow more false positives, or name fewer items",
        )
    # Paimon divides by 0 here.  Java makes the largest long of infinity, and -1 of that as an int,
    # which is below the least number.
    if items == 0:
        return bits, 1
    # Java's Math.round: Python's `round` would take halves to the even number.
    return bits, max(1, math.floor(bits / items * _LN2 + 0.5))


class BloomFilter64:
    """A Bloom filter of a fixed number of bits and hash functions, empty at first.

    ``bit_count`` is a positive multiple of 8 below 2^31, ``hash_functions`` is 1 to 1100
    (PolicyError otherwise).  Hashes are signed 64-bit integers.  Do not insert from several threads
    at once. Checking from several threads is safe.
    """

    __slots__ = ("_bits", "_hash_functions")

    @checked_arguments
    def __init__(self, bit_count: int, hash_functions: int) -> None:
        if not (8 <= bit_count <= MAX_BIT_COUNT and bit_count % 8 == 0):
            raise PolicyError(
                f"bit_count is {bit_count}, wanted a positive multiple of 8 up to {MAX_BIT_COUNT}"
            )
        if not 1 <= hash_functions <= MAX_HASH_FUNCTIONS:
            raise PolicyError(
                f"hash_functions is {hash_functions}, wanted 1 to {MAX_HASH_FUNCTIONS}"
            )
        self._bits: bytearray | memoryview = bytearray(bit_count // 8)
        self._hash_functions = hash_functions

    @classmethod
    @checked_arguments
    def sized(cls, items: int, fpp: float) -> BloomFilter64:
        """Return Paimon's empty filter for ``items`` values at ``fpp`` (:func:`sizing`)."""
        return cls(*sizing(items, fpp))

    @classmethod
    @checked_arguments
    def from_bytes(cls, body: bytes | memoryview) -> BloomFilter64:
        """Return the filter in an index body. Raises FormatError if the body is not a filter."""
        view = memoryview(body)
        size = view.nbytes - COUNT_BYTES
        if not 1 <= size <= MAX_BIT_COUNT // 8:
            raise FormatError(
                f"a bloom-filter index has {size} bytes of bits, wanted 1 to {MAX_BIT_COUNT // 8}"
            )
        count = int.from_bytes(view[:COUNT_BYTES], "big")
        # 0 is no damage: Paimon then looks at no position, and lets every value pass.
        if not 0 <= count <= MAX_HASH_FUNCTIONS:
            raise FormatError(
                f"a bloom-filter index has {count} hash functions, at most {MAX_HASH_FUNCTIONS} "
                "make sense"
            )
        loaded = cls.__new__(cls)
        # Bytes that nobody can change are not copied until something is inserted.
        bits = view[COUNT_BYTES:]
        loaded._bits = bits if bits.readonly else bytearray(bits)
        loaded._hash_functions = count
        return loaded

    def to_bytes(self) -> bytes:
        """Return the index body, which :meth:`from_bytes` reads."""
        return b"".join((self._hash_functions.to_bytes(COUNT_BYTES, "big"), self._bits))

    @property
    def bitset(self) -> bytes:
        """The bits alone."""
        return bytes(self._bits)

    @property
    def bit_count(self) -> int:
        """The number of bits."""
        return 8 * len(self._bits)

    @property
    def hash_functions(self) -> int:
        """The number of positions that each inserted hash sets."""
        return self._hash_functions

    @property
    def checked_functions(self) -> int:
        """The number of positions that a check looks at: as many as Paimon's own reader looks at.

        That reader adds the four bytes of the number as signed bytes and so reads 128 as -128. Then
        it looks at no position, and every answer is "maybe".
        """
        signed = (
            b - 256 if b > 127 else b for b in self._hash_functions.to_bytes(COUNT_BYTES, "big")
        )
        return max(0, sum(b << shift for b, shift in zip(signed, (24, 16, 8, 0), strict=True)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BloomFilter64):
            return NotImplemented
        return self._hash_functions == other._hash_functions and self._bits == other._bits

    __hash__ = None  # type: ignore[assignment]  # filters change

    def __repr__(self) -> str:
        return f"<BloomFilter64 of {self.bit_count} bits, {self.hash_functions} hash functions>"

    def insert_hash(self, h: int) -> None:
        """Insert one hash."""
        bits = self._own_bits()
        for position in self._positions(h, self.hash_functions):
            bits[position >> 3] |= 1 << (position & 7)

    def check_hash(self, h: int) -> bool:
        """Return whether the hash may have been inserted. False is certain."""
        return all(
            self._bits[position >> 3] >> (position & 7) & 1
            for position in self._positions(h, self.checked_functions)
        )

    def insert_hashes(self, hashes: NDArray[np.int64]) -> None:
        """Insert a 1-D array of hashes."""
        from secure_bloom.kernels import loops

        loops.paimon_insert(self._array(), self.hash_functions, _as_hashes(hashes))

    def check_hashes(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return :meth:`check_hash` of each hash in a 1-D array, in the same shape."""
        import numpy as np

        from secure_bloom.kernels import loops

        found = np.empty(len(hashes), np.bool_)
        loops.paimon_check(self._array(), self.checked_functions, _as_hashes(hashes), found)
        return found

    def fill(self) -> float:
        """Return the share of all bits that are set."""
        return int.from_bytes(self._bits).bit_count() / self.bit_count

    def fpp(self) -> float:
        """Return the probability that a hash passes without being inserted, from the set bits."""
        # The number that Paimon's reader checks counts: if it looks at no position, every value
        # passes.
        independent = self.fill() ** self.checked_functions
        if self.bit_count > _FEW_BITS or independent in (0.0, 1.0):
            return independent
        # In few bits the positions of a hash often coincide, and more hashes pass.
        return max(independent, float(self.check_hashes(_sample()).mean()))

    def estimated_values(self) -> int | None:
        """Return an estimate, from the bits, of how many distinct values were inserted.

        Return None for a full filter.
        """
        fill = self.fill()
        if fill == 1.0 or self.hash_functions == 0:
            return None
        found = round(-self.bit_count / self.hash_functions * math.log1p(-fill))
        # In a small filter the positions of one value are often the same ones.
        return max(found, 1) if fill else 0

    def _positions(self, h: int, functions: int) -> Iterator[int]:
        low, high = h & 0xFFFFFFFF, h >> 32
        for i in range(1, functions + 1):
            # Java adds ints, which wrap at 32 bits; Python's numbers would go on.
            step = (low + i * high) & 0xFFFFFFFF
            # The complement of a negative number, not its absolute value: that of -2^31 would be
            # negative in Java.
            yield (step if step < 1 << 31 else ~step & 0xFFFFFFFF) % self.bit_count

    def _array(self) -> NDArray[np.uint8]:
        """Return the bits as a writable array."""
        import numpy as np

        return np.frombuffer(self._own_bits(), np.uint8)

    def _own_bits(self) -> bytearray:
        """Return the bits as a bytearray of this filter alone, which can be changed."""
        if not isinstance(self._bits, bytearray):
            self._bits = bytearray(self._bits)
        return self._bits


def _as_hashes(hashes: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    if hashes.ndim != 1 or hashes.dtype != np.int64:
        raise PolicyError(f"hashes are {hashes.ndim}-D {hashes.dtype}, wanted 1-D int64")
    return np.require(hashes, requirements=["C", "A"])
