"""SplitBlockBloomFilter: insert, check, exact false-positive probability, fold.  BloomFilter.md.

A filter is ``z`` blocks of 256 bits, each of eight 32-bit little-endian words.  A hash picks its
block with its upper 32 bits and one bit in each word of it with its lower 32 bits.  Single values
are handled without numpy; only the bulk functions import it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from secure_bloom.bloom import xxh64
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.kernels import extension
from secure_bloom.kernels.salt import SALT
from secure_bloom.reports.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BYTES_PER_BLOCK: Final = 32
WORDS_PER_BLOCK: Final = 8
#: The specification's bound: a block's number fits 31 bits.
MAX_BLOCK_COUNT: Final = (1 << 31) - 1

#: The extension counts this many blocks in one call, and folds those of a filter that is built.
_COUNTED_AT_ONCE: Final = 1 << 22
_FOLDED_AT_ONCE: Final = frozenset(1 << exponent for exponent in range(23))
_AS_DOUBLE, _AS_INTEGER = struct.Struct("<d"), struct.Struct("<q")
#: The bits of so few blocks are counted without numpy, whose import takes a third of a short run.
_COUNTED_AS_INTEGER: Final = 512
#: Blocks counted at a time, so that counting needs little memory next to a large filter.
_COUNTED_BLOCKS: Final = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One hash: its upper half picks the block of any filter, ``mask`` is its bits in the block."""

    upper: int
    mask: int

    @classmethod
    def of(cls, h: int) -> Probe:
        """Return the probe of a hash. Raises PolicyError unless ``h`` is an XXH64 hash."""
        _check_hash(h)
        return cls(upper=h >> 32, mask=_mask(h))


class SplitBlockBloomFilter:
    """A split-block Bloom filter of a fixed number of blocks, empty at first.

    ``block_count`` is 1 <= z < 2^31 (PolicyError otherwise). A block has 32 bytes.  Do not insert
    from several threads at once. Checking from several threads is safe.
    """

    __slots__ = ("_bitset",)

    @checked_arguments
    def __init__(self, block_count: int) -> None:
        if not 1 <= block_count <= MAX_BLOCK_COUNT:
            raise PolicyError(
                f"block_count is {block_count}, it must lie between 1 and {MAX_BLOCK_COUNT}"
            )
        self._bitset: bytes | bytearray | memoryview = bytearray(block_count * BYTES_PER_BLOCK)

    @classmethod
    @checked_arguments
    def from_bytes(cls, bitset: bytes | bytearray | memoryview) -> SplitBlockBloomFilter:
        """Return the filter with these bits. Raises FormatError unless they are whole blocks.

        ``bytes``, or a view of ``bytes``, are shared until a value is inserted. Bits that their
        owner may change are copied at once.
        """
        byte_count = memoryview(bitset).nbytes
        block_count, rest = divmod(byte_count, BYTES_PER_BLOCK)
        # An empty bitset has no block for any hash.
        if rest or not 1 <= block_count <= MAX_BLOCK_COUNT:
            raise FormatError(
                f"a Bloom filter's bitset has {byte_count} bytes,"
                f" wanted a positive multiple of {BYTES_PER_BLOCK}"
            )
        # Not by __init__, which would make a second bitset of this size.
        loaded = cls.__new__(cls)
        base = bitset.obj if isinstance(bitset, memoryview) else bitset
        # A probe of one value reads 32 bytes of a filter, so large ones are not copied for it.
        loaded._bitset = bitset if isinstance(base, bytes) else bytearray(bitset)
        return loaded

    def to_bytes(self) -> bytes:
        """Return the bitset as it is in a file."""
        return bytes(self._bitset)

    @property
    def byte_count(self) -> int:
        """Bytes of the bitset, ``BloomFilterHeader.numBytes``."""
        return len(self._bitset)

    @property
    def block_count(self) -> int:
        """The number of blocks, ``z``."""
        return len(self._bitset) // BYTES_PER_BLOCK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SplitBlockBloomFilter):
            return NotImplemented
        return self._bitset == other._bitset

    __hash__ = None  # type: ignore[assignment]  # filters change

    def __repr__(self) -> str:
        blocks = counted(self.block_count, "block")
        return f"<SplitBlockBloomFilter of {blocks}, {self.byte_count} bytes>"

    def insert(self, value: bytes) -> None:
        """Insert one value, given as its bytes in PLAIN encoding."""
        self.insert_hash(xxh64.hash_value(value))

    def check(self, value: bytes) -> bool:
        """Return whether the value may have been inserted. False is certain."""
        return self.check_hash(xxh64.hash_value(value))

    def insert_hash(self, h: int) -> None:
        """Insert one XXH64 hash (block_insert)."""
        bitset, span = self._own(), self._block_slice(h)
        block = int.from_bytes(bitset[span], "little")
        # Eight words of 32 bits at once: in little-endian order a block is one number of 256 bits.
        bitset[span] = (block | _mask(h)).to_bytes(BYTES_PER_BLOCK, "little")

    def check_hash(self, h: int) -> bool:
        """Return whether the hash may have been inserted (block_check). False is certain."""
        return self.check_probe(Probe.of(h))

    def check_probe(self, probe: Probe) -> bool:
        """Return :meth:`check_hash` of a probe, which is made once and checked in many filters."""
        # BloomFilter.md's way to pick a block without a division: upper / 2^32 is below 1, so the
        # product's upper half is below the number of blocks.
        try:
            start = (probe.upper * self.block_count >> 32) * BYTES_PER_BLOCK
        except (AttributeError, TypeError) as exc:
            kind = type(probe).__name__
            raise PolicyError(f"probe is of type {kind}, wanted a Probe") from exc
        block = int.from_bytes(self._bitset[start : start + BYTES_PER_BLOCK], "little")
        return block & probe.mask == probe.mask

    @checked_arguments
    def insert_hashes(self, hashes: NDArray[np.uint64]) -> None:
        """Insert a 1-D array of hashes."""
        from secure_bloom.kernels import loops

        loops.insert_hashes(self._blocks(), _as_hashes(hashes))

    @checked_arguments
    def check_hashes(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return :meth:`check_hash` of each hash in a 1-D array, in the same shape."""
        import numpy as np

        from secure_bloom.kernels import loops

        found = np.empty(len(hashes), np.bool_)
        loops.check_hashes(self._blocks(), _as_hashes(hashes), found)
        return found

    @checked_arguments
    def insert_fixed(self, values: NDArray[Any]) -> None:
        """Insert fixed-width values, in the forms that :func:`xxh64.hash_fixed` takes."""
        for hashes in xxh64.fixed_chunks(values):
            self.insert_hashes(hashes)

    @checked_arguments
    def insert_binary(
        self,
        offsets: NDArray[np.int32] | NDArray[np.int64],
        data: NDArray[np.uint8],
        *,
        prefix: int = 0,
    ) -> None:
        """Insert binary values, in the forms that :func:`xxh64.hash_binary` takes.

        After an error none of them is inserted.
        """
        for hashes in xxh64.binary_chunks(offsets, data, prefix=prefix):
            self.insert_hashes(hashes)

    def insert_plain(self, values: NDArray[np.uint8], count: int, width: int) -> None:
        """Insert checked values of a PLAIN page by the C extension.

        ``width`` is the width of every value, or 0 for BYTE_ARRAYs.
        """
        if extension.native.insert_plain(self._own(), values, count, width) < 0:
            raise FormatError("the values of a page changed after they were counted")

    def fpp(self) -> float:
        """Return the exact probability that a value which was not inserted passes :meth:`check`.

        For each block, the shares of set bits (popcount / 32) of its words are multiplied. The fpp
        is the mean of these products, counted in integers, so that only the last division rounds.
        """
        if extension.native is not None and self.block_count <= _COUNTED_AT_ONCE:
            total = extension.native.sum_of_products(self._bitset)
            return int(total) / (self.block_count * 32**WORDS_PER_BLOCK)
        import numpy as np

        blocks = self._blocks()
        # Python's integers are used: the sum of the largest filter of the format needs 71 bits.
        total = 0
        for start in range(0, len(blocks), _COUNTED_BLOCKS):
            # A row for each word of the blocks: numpy multiplies rows three times as fast.
            bits = np.bitwise_count(blocks[start : start + _COUNTED_BLOCKS]).T.astype(
                np.uint64, "C"
            )
            # A product is at most 2^40, so the sum over so few blocks fits 64 bits.
            total += int(bits.prod(axis=0).sum())
        return total / (self.block_count * 32**WORDS_PER_BLOCK)

    def fill(self) -> float:
        """Return the share of all bits that are set."""
        if self.block_count <= _COUNTED_AS_INTEGER:
            return int.from_bytes(self._bitset).bit_count() / (8 * self.byte_count)
        import numpy as np

        return int(np.bitwise_count(self._blocks()).sum(dtype=np.uint64)) / (8 * self.byte_count)

    def folded(self) -> SplitBlockBloomFilter:
        """Return the filter that the same values would have made with half the blocks.

        Halving ``z`` halves every block's number, so blocks ``2j`` and ``2j + 1`` are merged into
        ``j``.  Raises PolicyError when the number of blocks is odd.
        """
        import numpy as np

        if self.block_count % 2:
            raise PolicyError(f"cannot fold {self.block_count} blocks, wanted an even number")
        half = SplitBlockBloomFilter(self.block_count // 2)
        pairs = self._blocks().reshape(-1, 2, WORDS_PER_BLOCK)
        np.bitwise_or(pairs[:, 0], pairs[:, 1], out=half._blocks())
        return half

    @checked_arguments
    def folded_to(self, fpp: float) -> SplitBlockBloomFilter:
        """Return the smallest folding of this filter whose exact fpp is at most ``fpp``.

        Folding never lowers the fpp, so the first folding beyond the request ends the search.
        Returns this filter itself when it cannot be folded, or is beyond the request already.
        """
        if extension.native is not None and self.block_count in _FOLDED_AT_ONCE:
            return self._folded_at_once(fpp)
        smallest = self
        while smallest.block_count % 2 == 0:
            half = smallest.folded()
            # The bits decide, not the number of values: nobody knows how many of them were
            # distinct.
            if half.fpp() > fpp:
                break
            smallest = half
        return smallest

    def _folded_at_once(self, fpp: float) -> SplitBlockBloomFilter:
        bits = bytearray(self._bitset)
        block_count = extension.native.fold(bits, *_AS_INTEGER.unpack(_AS_DOUBLE.pack(fpp)))
        if block_count == self.block_count:
            return self
        del bits[block_count * BYTES_PER_BLOCK :]
        smallest = SplitBlockBloomFilter.__new__(SplitBlockBloomFilter)
        smallest._bitset = bits
        return smallest

    def _block_slice(self, h: int) -> slice:
        _check_hash(h)
        start = ((h >> 32) * self.block_count >> 32) * BYTES_PER_BLOCK
        return slice(start, start + BYTES_PER_BLOCK)

    def _own(self) -> bytearray:
        """Return the bits as a bytearray of this filter alone, which may be changed."""
        # Copied by the first insert: until then the bits may be those of a cached file.
        if not isinstance(self._bitset, bytearray):
            self._bitset = bytearray(self._bitset)
        return self._bitset

    def _blocks(self) -> NDArray[np.uint32]:
        """Return the bits as a writable array of shape (z, 8)."""
        import numpy as np

        return np.frombuffer(self._own(), np.dtype("<u4")).reshape(-1, WORDS_PER_BLOCK)


def _check_hash(h: int) -> None:
    if not (isinstance(h, int) and 0 <= h < 1 << 64):
        raise PolicyError("h is not a hash, wanted an unsigned 64-bit integer")


def _mask(h: int) -> int:
    """Return ``mask(x)`` of the lower half of a hash, as one 256-bit integer of eight words."""
    x = h & 0xFFFFFFFF
    # The format multiplies in 32 bits and takes the upper five.  Python does not wrap there, so
    # `& 31` drops what is above.
    return sum(1 << (32 * i + (x * salt >> 27 & 31)) for i, salt in enumerate(SALT))


def _as_hashes(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    import numpy as np

    if hashes.ndim != 1 or hashes.dtype != np.uint64:
        raise PolicyError(f"hashes are {hashes.ndim}-D {hashes.dtype}, wanted 1-D uint64")
    return np.require(hashes, requirements=["C", "A"])
