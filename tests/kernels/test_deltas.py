"""The DELTA encodings, in C and in numpy: both decode what pyarrow encodes, and refuse the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels import loops, numpy_loops
from secure_bloom.kernels.loops import DAMAGED
from tests.kernels.hybrid import varint

I64 = st.integers(-(2**63), 2**63 - 1)
MASK = 2**64 - 1


def zigzag(number: int) -> int:
    number = (number + 2**63) % 2**64 - 2**63
    return (number << 1 ^ number >> 63) & MASK


def encoded(numbers: list[int], of_mini: int = 32, minis: int = 4) -> bytes:
    """DELTA_BINARY_PACKED, as Encodings.md describes it."""
    found = varint(of_mini * minis) + varint(minis) + varint(len(numbers))
    found += varint(zigzag(numbers[0] if numbers else 0))
    deltas = [(b - a + 2**63) % 2**64 - 2**63 for a, b in itertools.pairwise(numbers)]
    for start in range(0, len(deltas), of_mini * minis):
        block = deltas[start : start + of_mini * minis]
        least = min(block)
        found += varint(zigzag(least))
        parts = [block[i : i + of_mini] for i in range(0, len(block), of_mini)]
        widths = [max((it - least & MASK).bit_length() for it in part) for part in parts]
        found += bytes(widths + [0] * (minis - len(widths)))
        for width, part in zip(widths, parts, strict=True):
            bits = sum((it - least & MASK) << width * i for i, it in enumerate(part))
            found += bits.to_bytes(of_mini // 8 * width, "little")
    return found


def decoded(stored: bytes, count: int, widest: int = 64, start: int = 0) -> list[int] | None:
    """The numbers that both ways decode, or None for damage."""
    content = np.frombuffer(stored, np.uint8)
    numbers, twin = np.zeros(count, np.int64), np.zeros(count, np.int64)
    end = loops.delta_numbers(content, start, widest, numbers)
    assert end == numpy_loops.delta_numbers(content, start, widest, twin)
    if end == DAMAGED:
        return None
    assert end == len(stored)
    assert numbers.tolist() == twin.tolist()
    return [int(number) for number in numbers]


@given(st.lists(I64 | st.integers(-9, 9), max_size=300), st.sampled_from([(32, 4), (64, 1)]))
def test_numbers_come_back(numbers: list[int], blocks: tuple[int, int]) -> None:
    stored = encoded(numbers, *blocks)
    assert decoded(stored, len(numbers)) == numbers
    assert decoded(b"before" + stored, len(numbers), start=6) == numbers
    assert decoded(stored, len(numbers) + 1) is None
    assert not numbers or decoded(stored[:-1], len(numbers)) is None


def test_deltas_that_are_too_wide_are_damage() -> None:
    stored = encoded([0, 2**40])
    assert decoded(stored, 2, widest=64) == [0, 2**40]
    # One delta is its block's least, so that the widths are of what is above it.
    assert decoded(encoded([0, 0, 2**40]), 3, widest=32) is None


@given(st.binary(max_size=60), st.integers(0, 70))
def test_any_bytes_are_decoded_alike(stored: bytes, count: int) -> None:
    content = np.frombuffer(stored, np.uint8)
    numbers, twin = np.zeros(count, np.int64), np.zeros(count, np.int64)
    end = loops.delta_numbers(content, 0, 64, numbers)
    assert end == numpy_loops.delta_numbers(content, 0, 64, twin)
    assert end == DAMAGED or numbers.tolist() == twin.tolist()


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=30), st.data())
def test_values_with_prefixes_come_back(values: list[bytes], data: st.DataObject) -> None:
    prefixes, suffixes = [0], [values[0]]
    for before, value in itertools.pairwise(values):
        same = next(
            (i for i, (a, b) in enumerate(zip(before, value, strict=False)) if a != b), None
        )
        length = min(len(before), len(value)) if same is None else same
        prefixes.append(length)
        suffixes.append(value[length:])
    ranks = sorted(data.draw(st.sets(st.integers(0, len(values) - 1))))
    wanted = [values[rank] for rank in ranks]
    assert joined(prefixes, suffixes, ranks, sum(map(len, wanted))) == wanted


def joined(
    prefixes: list[int], suffixes: list[bytes], ranks: list[int], room: int
) -> list[bytes] | None:
    """The values that both ways join, or None for damage."""
    bounds = np.cumsum([0, *map(len, suffixes)], dtype=np.int64)
    content = np.frombuffer(b"".join(suffixes), np.uint8)
    found = []
    for way in (loops, numpy_loops):
        ends, into = np.zeros(len(ranks), np.int64), np.zeros(room, np.uint8)
        end = way.join_prefixes(
            np.array(prefixes, np.int64), bounds, content, np.array(ranks, np.int64), ends, into
        )
        starts = [0, *ends.tolist()[:-1]]
        whole = into.tobytes()
        spans = zip(starts, ends.tolist(), strict=len(ranks) > 0)
        found.append(None if end == DAMAGED else [whole[a:b] for a, b in spans])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("prefixes", "suffixes"),
    [([1], [b"a"]), ([0, 3], [b"ab", b"c"]), ([0, -1], [b"ab", b"c"]), ([0, 2**40], [b"a", b""])],
)
def test_a_prefix_that_is_not_there_is_damage(prefixes: list[int], suffixes: list[bytes]) -> None:
    assert joined(prefixes, suffixes, [len(prefixes) - 1], 100) is None


def test_values_without_room_are_damage() -> None:
    assert joined([0, 1], [b"ab", b"c"], [0, 1], 3) is None
    assert joined([0, 1], [b"ab", b"c"], [0, 1], 4) == [b"ab", b"ac"]
