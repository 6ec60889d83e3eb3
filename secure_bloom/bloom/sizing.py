"""The size of a split-block filter: the fpp to expect of it, and the number of blocks to build.

The usual formula of writers, (1 - e^(-8n/m))^8, is too small: by a factor of 1.15 at 10 %, of ten
at 0.001 %.  The formula here takes into account that blocks get different numbers of values.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import methodcaller

from secure_bloom.bloom.split_block import BYTES_PER_BLOCK, WORDS_PER_BLOCK
from secure_bloom.errors import PolicyError


def expected_fpp(values: int, block_count: int) -> float:
    """Return the fpp to expect of ``values`` distinct values in ``block_count`` blocks.

    The number of values in a block is Poisson with mean n / z.  In a block with i values, each bit
    of a word is set with probability 1 - (31/32)^i.
    """
    return _poisson_mean(values / block_count, lambda i: _set_share(i) ** WORDS_PER_BLOCK)


def block_count_for(values: int, fpp: float, max_bytes: int) -> int:
    """Return the number of blocks, a power of two, to build before folding.

    It is the smallest number at which the exact fpp will be at most ``fpp``, however the values are
    distributed (six standard deviations are added), unless ``max_bytes`` limits it.  Raises
    PolicyError for a negative number of values, or for less than one block of bytes.
    """
    if values < 0 or max_bytes < BYTES_PER_BLOCK:
        raise PolicyError(
            f"cannot size a Bloom filter for {values} values in {max_bytes} bytes,"
            f" wanted at least 0 and {BYTES_PER_BLOCK}"
        )
    # Rounded down to a power of two: `max_bytes` is a bound.
    largest = (max_bytes // BYTES_PER_BLOCK).bit_length() - 1
    # A power of two: Arrow C++ refuses other sizes, and each can be folded down to one block.
    # More blocks mean a lower fpp.
    is_enough = methodcaller("is_enough_for", values)
    return 1 << bisect_left(_limits(fpp, largest), True, key=is_enough)


@functools.lru_cache(maxsize=256)
def _limits(fpp: float, count: int) -> Sequence[_Limits]:
    """Return the known limits of ``count`` sizes of filters: 1, 2, 4 blocks and so on."""
    return [_Limits(fpp, 1 << exponent) for exponent in range(count)]


class _Limits:
    """The known limits of how many values a filter of some number of blocks may have.

    The fpp rises with the number of values, so one answer decides all smaller or larger numbers.
    Row groups of many files have different numbers, and computing an answer costs as much as the
    rest of a small filter.
    """

    def __init__(self, fpp: float, block_count: int) -> None:
        self._fpp, self._block_count = fpp, block_count
        # Threads that set one of these at once lose what the other one found, and no more.
        self._enough_for, self._too_small_for = 0, math.inf

    def is_enough_for(self, values: int) -> bool:
        """Return whether the filter keeps the fpp with ``values`` values, however they fall."""
        if not self._enough_for < values < self._too_small_for:
            return values <= self._enough_for
        is_enough = _unlucky_fpp(values, self._block_count) <= self._fpp
        if is_enough:
            self._enough_for = values
        else:
            self._too_small_for = values
        return is_enough


def _unlucky_fpp(values: int, block_count: int) -> float:
    """Return the expected fpp plus six standard deviations of the exact fpp over random fillings.

    The distribution has a long tail if blocks are few: with four deviations, one filter of four
    blocks in 1,100 exceeded a request of 0.1 %.
    """
    mean = expected_fpp(values, block_count)
    mean_square = _poisson_mean(
        values / block_count, lambda i: _set_share_squared(i) ** WORDS_PER_BLOCK
    )
    return mean + 6 * math.sqrt(max(0.0, mean_square - mean**2) / block_count)


def _set_share(i: int) -> float:
    """Return the mean of popcount / 32 of a word into which ``i`` random bits were set."""
    # 1 - (31/32)^i; for a small i the plain subtraction would lose digits.
    return -math.expm1(i * math.log(31 / 32))


def _set_share_squared(i: int) -> float:
    """Return the mean of (popcount / 32)^2.

    It is the probability that two random bits are set. In 1 of 32 cases they are the same bit.
    """
    both_set = 1 - 2 * (31 / 32) ** i + (30 / 32) ** i
    return _set_share(i) / 32 + both_set * 31 / 32


def _poisson_mean(load: float, per_block: Callable[[int], float]) -> float:
    """Return the mean of ``per_block(i)`` where i is Poisson with mean ``load``.

    Terms beyond 12 standard deviations are below 1e-20 of the sum.  Another 60 terms are added for
    low loads, whose tail is longer than that of a normal distribution.  A block of 4096 values or
    more is full, to the precision of a double.
    """
    if load == 0 or load > 4096:
        return per_block(int(load))
    spread = 12 * math.sqrt(load) + 60
    # The terms differ by many powers of ten, and a plain sum would lose the small ones.
    return math.fsum(
        math.exp(i * math.log(load) - load - math.lgamma(i + 1)) * per_block(i)
        for i in range(max(0, int(load - spread)), int(load + spread))
    )
