"""The compiled filter sets and asks for the bits that the specification's pseudo-code names."""

from __future__ import annotations

import numpy as np
import pytest

from secure_bloom.kernels.salt import SALT
from secure_bloom.kernels.sbbf import check_hashes, insert_hashes


def block_and_bits(h: int, blocks: int) -> tuple[int, list[int]]:
    """BloomFilter.md, "Technical Approach"."""
    low = h & 0xFFFF_FFFF
    return (h >> 32) * blocks >> 32, [(low * salt & 0xFFFF_FFFF) >> 27 for salt in SALT]


@pytest.mark.parametrize("count", [1, 2, 1024])
def test_inserting_sets_one_bit_in_each_word_of_one_block(count: int) -> None:
    hashes = np.random.default_rng(count).integers(0, 2**64, 100, np.uint64)
    expected = np.zeros((count, 8), np.uint32)
    for h in hashes.tolist():
        block, bits = block_and_bits(h, count)
        for word, bit in enumerate(bits):
            expected[block, word] |= np.uint32(1 << bit)
    blocks = np.zeros((count, 8), np.uint32)
    insert_hashes(blocks, hashes)
    assert (blocks == expected).all()


def test_checking_wants_all_eight_bits() -> None:
    h = np.array([0x0123_4567_89AB_CDEF], np.uint64)
    blocks, found = np.zeros((4, 8), np.uint32), np.zeros(1, np.bool_)
    insert_hashes(blocks, h)
    check_hashes(blocks, h, found)
    assert found[0]
    block, bits = block_and_bits(int(h[0]), 4)
    for word, bit in enumerate(bits):
        lacking = blocks.copy()
        lacking[block, word] &= np.uint32(~(1 << bit) & 0xFFFF_FFFF)
        check_hashes(lacking, h, found)
        assert not found[0]
