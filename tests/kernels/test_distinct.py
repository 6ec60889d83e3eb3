"""Distinct numbers of many arrays, and how often they are sorted."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

from secure_bloom.kernels import distinct as module
from secure_bloom.kernels.distinct import DistinctNumbers, distinct


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_distinct_numbers_are_in_ascending_order(size: int) -> None:
    numbers = np.random.default_rng(size).integers(-(1 << 63), 1 << 63, size) // (1 << 55)
    given = numbers.copy()
    assert distinct(numbers).tolist() == sorted({*numbers.tolist()})
    assert numbers.tolist() == given.tolist()


def test_numbers_of_arrays_are_found_at_any_time_and_the_smallest_are_kept() -> None:
    found, small = DistinctNumbers(np.int64), DistinctNumbers(np.uint64, 3)
    assert (found.found().tolist(), found.found().dtype) == ([], np.int64)
    with mock.patch.object(module, "_GATHERED", 5):
        for start in (7, 1, 7):
            found.add(np.arange(start, start + 4))
            small.add(np.arange(start, start + 4, dtype=np.uint64))
    assert found.found().tolist() == [1, 2, 3, 4, 7, 8, 9, 10]
    assert (small.found().tolist(), small.found().dtype) == ([1, 2, 3], np.uint64)


def test_a_number_is_sorted_a_few_times_however_many_arrays_come_after_it() -> None:
    sorted_ones = 0

    def counted(numbers: np.ndarray) -> np.ndarray:
        nonlocal sorted_ones
        sorted_ones += len(numbers)
        return distinct(numbers)

    with (
        mock.patch.object(module, "_GATHERED", 100),
        mock.patch.object(module, "distinct", counted),
    ):
        numbers = DistinctNumbers(np.int64)
        for start in range(0, 100_000, 10):
            numbers.add(np.arange(start, start + 10))
        assert len(numbers.found()) == 100_000
    assert sorted_ones < 400_000
