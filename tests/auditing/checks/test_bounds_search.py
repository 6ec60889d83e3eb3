"""Statistics and column indexes, found by their bytes alone."""

from __future__ import annotations

import numpy as np
import pytest

from secure_bloom.auditing.checks.bounds_search import LegalBounds, has_stray_bounds
from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.metadata import ColumnIndex, Statistics

NONE = LegalBounds(indexes=frozenset(), bounds=frozenset())
TEXTS = Statistics.of(min_value=b"anna", max_value=b"zoe", null_count=3).encode()
NUMBERS = Statistics.of(min_value=bytes(8), max_value=b"\x09" * 8, null_count=0).encode()
BOTH = Statistics.of(
    min=b"a", max=b"b", min_value=b"a", max_value=b"b", null_count=0, distinct_count=2
).encode()


def index(pages: int) -> bytes:
    lists = {"min_values": [b"a"] * pages, "max_values": [b"b"] * pages}
    return ColumnIndex.of(null_pages=[False] * pages, boundary_order=1, **lists).encode()


@pytest.mark.parametrize(
    "found", [TEXTS, NUMBERS, BOTH, index(1), index(14), index(15), index(300)]
)
def test_they_are_found_between_other_bytes(found: bytes) -> None:
    noise = np.random.default_rng(3).bytes(5000)
    assert has_stray_bounds(noise + found + noise, 0, NONE)
    assert not has_stray_bounds(noise, 0, NONE)


def test_bounds_of_columns_in_clear_and_named_indexes_are_no_stray_ones() -> None:
    bounds = LegalBounds(indexes=frozenset(), bounds=frozenset({b"anna", b"zoe", b"a", b"b"}))
    assert not has_stray_bounds(TEXTS + index(3), 0, bounds)
    named = LegalBounds(indexes=frozenset({100}), bounds=frozenset())
    assert not has_stray_bounds(index(3), 100, named)
    assert has_stray_bounds(index(3), 101, named)


def test_noise_has_none() -> None:
    noise = np.random.default_rng(4).bytes(8 * 1024 * 1024)
    assert not has_stray_bounds(noise, 0, NONE)


def test_data_that_is_made_to_take_long_is_an_error() -> None:
    lists = {"min_values": [b""] * 14, "max_values": [b"b"] * 13}
    half = ColumnIndex.of(null_pages=[False] * 14, boundary_order=1, **lists).encode()
    with pytest.raises(FormatError, match="thousands of places"):
        has_stray_bounds(half * 3000, 0, NONE)
