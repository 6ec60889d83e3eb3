"""Whether a stray filter in clear is an older filter of a column in clear, told by its bits.

An older filter has the same values as the present one, or some of them, perhaps in another size.
Folded to one size, both are equal, or the present one has all bits of the older one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.split_block import SplitBlockBloomFilter

#: A filter that lets more than half of absent values pass equals others by chance.
_USELESS = 0.5
#: The chance that a filter has all bits of a filter of other values must be below this.
_CHANCE = 1e-3
_BITS_PER_VALUE = 8
#: How many bytes of filters are compared bit by bit; the rest counts as unexplained.
_MOST_COMPARED = 1 << 30

#: Blocks of a filter, and a digest of its bits.
_Level = tuple[int, bytes]


class ClearFilters:
    """The filters of a file's columns in clear, each read once."""

    def __init__(self, filters: Iterable[SplitBlockBloomFilter]) -> None:
        self._filters = tuple(filters)
        levels = [list(map(_level, _foldings(each))) for each in self._filters]
        self._whole = {each[0] for each in levels if each}
        self._folded = {level for each in levels for level in each}
        self._left = _MOST_COMPARED

    def explain(self, found: SplitBlockBloomFilter) -> bool:
        """Whether ``found`` tells nothing new: its values are values of these filters, or none."""
        if found.fill() in (0.0, 1.0):
            return True
        levels = list(map(_level, _foldings(found)))
        if not self._whole.isdisjoint(levels) or not self._folded.isdisjoint(levels[:1]):
            return True
        return any(self._is_part(found, each) for each in self._filters)

    def _is_part(self, found: SplitBlockBloomFilter, other: SplitBlockBloomFilter) -> bool:
        """Whether ``other`` has all bits of ``found``, and not by chance."""
        self._left -= max(found.byte_count, other.byte_count)
        smaller = min(found.block_count, other.block_count)
        one, all_ = _folded_to(found, smaller), _folded_to(other, smaller)
        if self._left < 0 or one is None or all_ is None:
            return False
        bits = _bits(one)
        values = max(1.0, int(np.bitwise_count(bits).sum()) / _BITS_PER_VALUE)
        return not (bits & ~_bits(all_)).any() and float(all_.fpp() ** values) < _CHANCE


def _foldings(made: SplitBlockBloomFilter) -> Iterator[SplitBlockBloomFilter]:
    """The filter and its foldings, as far as they are not useless."""
    while made.fpp() <= _USELESS:
        yield made
        if made.block_count % 2:
            return
        made = made.folded()


def _folded_to(made: SplitBlockBloomFilter, block_count: int) -> SplitBlockBloomFilter | None:
    """The filter with so many blocks; None where folding does not lead there."""
    while made.block_count > block_count and made.block_count % 2 == 0:
        made = made.folded()
    return made if made.block_count == block_count else None


def _level(made: SplitBlockBloomFilter) -> _Level:
    return made.block_count, hashlib.sha256(made.to_bytes()).digest()


def _bits(made: SplitBlockBloomFilter) -> NDArray[np.uint64]:
    return np.frombuffer(made.to_bytes(), np.uint64)
