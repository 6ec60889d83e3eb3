"""Lengths and levels of PLAIN pages, read one by one and held against the bytes at hand."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels.plain import DAMAGED, byte_array_offsets, count_level


@given(st.lists(st.binary(max_size=20), max_size=20))
def test_byte_arrays_are_found_where_they_start(values: list[bytes]) -> None:
    stored = b"".join(struct.pack("<I", len(value)) + value for value in values)
    offsets = np.zeros(len(values) + 1, np.int64)
    assert byte_array_offsets(np.frombuffer(stored, np.uint8), offsets) != DAMAGED
    bounds = itertools.pairwise(offsets)
    assert [stored[start + 4 : end] for start, end in bounds] == values


@pytest.mark.parametrize("stored", [b"", b"\x01\x00", struct.pack("<I", 5) + b"four"])
def test_a_length_that_leaves_the_page_is_damage(stored: bytes) -> None:
    offsets = np.zeros(2, np.int64)
    assert byte_array_offsets(np.frombuffer(stored, np.uint8), offsets) == DAMAGED


def runs(*encoded: bytes) -> np.ndarray:
    return np.frombuffer(b"".join(encoded), np.uint8)


def test_levels_are_counted_over_runs_of_both_kinds() -> None:
    of_one_value = bytes([5 << 1, 1])  # five times level 1
    packed = bytes([1 << 1 | 1, 0b0101_0101])  # eight levels of one bit
    assert count_level(runs(of_one_value, packed), 1, 1, 13) == 9
    assert count_level(runs(of_one_value, packed), 1, 0, 13) == 4
    assert count_level(runs(of_one_value, packed), 1, 1, 6) == 6  # no more than there are values


def test_levels_that_end_too_soon_are_damage() -> None:
    assert count_level(runs(bytes([5 << 1, 1])), 1, 1, 6) == DAMAGED
    assert count_level(runs(bytes([2 << 1 | 1, 0xFF])), 1, 1, 16) == DAMAGED
    assert count_level(runs(b""), 1, 1, 1) == DAMAGED
