"""Bitmaps as another library writes them, every kind of container, and damage."""

from __future__ import annotations

import pyroaring
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError
from secure_bloom.tables.roaring_bitmaps import positions

MOST = 10**9
#: Arrays, runs, bit sets, several containers, and more than 32 bits.
KINDS = {
    "empty": [],
    "array": [3, 5, 70_000],
    "run": range(10_000),
    "bit set": range(0, 40_000, 3),
    "many containers": [*range(0, 400_000, 1000), *range(500_000, 600_000)],
    "beyond 32 bits": [1, 2**32 + 7, 5 * 2**32],
    "runs and arrays": [*range(100), 200_000, 200_002],
}


def encoded(numbers: object, *, with_runs: bool) -> bytes:
    bitmap = pyroaring.BitMap64(numbers)
    if with_runs:
        bitmap.run_optimize()
    return bitmap.serialize()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_runs", [True, False])
def test_the_numbers_are_those_that_were_written(kind: str, with_runs: bool) -> None:
    found = positions(encoded(KINDS[kind], with_runs=with_runs), most=MOST)
    assert found.tolist() == list(KINDS[kind])


@given(st.sets(st.integers(0, 300_000) | st.integers(0, 2**40)), st.booleans())
def test_any_numbers_come_back(numbers: set[int], with_runs: bool) -> None:
    assert positions(encoded(numbers, with_runs=with_runs), most=MOST).tolist() == sorted(numbers)


@given(st.sampled_from(sorted(KINDS)), st.integers(0, 200), st.integers(0, 255))
def test_damage_is_an_error_or_other_numbers(kind: str, at: int, byte: int) -> None:
    data = bytearray(encoded(KINDS[kind], with_runs=True))
    data[at % len(data)] = byte
    try:
        found = positions(bytes(data), most=MOST)
    except FormatError:
        return
    assert (found[1:] > found[:-1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_missing_or_too_many_are_an_error(kind: str) -> None:
    data = encoded(KINDS[kind], with_runs=True)
    for other in (data[:-1], data + b"\0"):
        with pytest.raises(FormatError):
            positions(other, most=MOST)


def test_more_numbers_than_rows_are_never_built() -> None:
    with pytest.raises(FormatError, match="more than "):
        positions(encoded(range(65_536), with_runs=True), most=65_535)
