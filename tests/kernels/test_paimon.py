"""Paimon's filter, in C and by numpy, beside the same steps in Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from secure_bloom.kernels.loops import paimon_check, paimon_hash, paimon_insert
from secure_bloom.paimon import hash_long

pytestmark = pytest.mark.usefixtures("both_ways")
NUMBERS = [0, 1, -1, 2**63 - 1, -(2**63), 1234567890123]


def positions(h: int, functions: int, bits: int) -> list[int]:
    """BloomFilter64 of Paimon: steps of 32 bits, those with the sign's bit inverted."""
    low, high = h & 0xFFFFFFFF, h >> 32 & 0xFFFFFFFF
    found = []
    for i in range(1, functions + 1):
        step = (low + i * high) & 0xFFFFFFFF
        found.append((step ^ 0xFFFFFFFF if step >> 31 else step) % bits)
    return found


def hashes() -> np.ndarray:
    found = np.empty(len(NUMBERS), np.int64)
    paimon_hash(np.array(NUMBERS, np.int64), found)
    return found


def test_numbers_hash_as_one_at_a_time() -> None:
    assert hashes().tolist() == [hash_long(number) for number in NUMBERS]


@pytest.mark.parametrize(("functions", "size"), [(1, 1), (5, 97)])
def test_the_bits_of_a_hash_are_set_and_asked_for(functions: int, size: int) -> None:
    bits = np.zeros(size, np.uint8)
    paimon_insert(bits, functions, hashes())
    wanted = {p for h in hashes().tolist() for p in positions(h, functions, 8 * size)}
    assert {i for i in range(8 * size) if bits[i >> 3] >> (i & 7) & 1} == wanted
    found = np.zeros(len(NUMBERS), np.bool_)
    paimon_check(bits, functions, hashes(), found)
    assert found.all()
    bits[:] = 0
    paimon_check(bits, functions, hashes(), found)
    assert not found.any()
