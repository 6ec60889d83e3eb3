"""Filters as a file has them, asked by the extension: hostile bytes say nothing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import encode_bloom_filter
from secure_bloom.bloom.xxh64 import hash_value
from secure_bloom.kernels import numpy_loops
from tests.kernels import native, needs_native

pytestmark = needs_native
#: Answers.
NONE, SOME, UNUSUAL = range(3)

_HEADER = encode_bloom_filter(SplitBlockBloomFilter(1), None)[:-32]
REST = _HEADER[2:]
_hashes = st.lists(st.integers(0, 2**64 - 1), max_size=20)
Numbers: TypeAlias = NDArray[np.int64]
Hashes: TypeAlias = NDArray[np.uint64]


def ask(data: bytes, places: list[tuple[int, int]], hashes: list[int], base: int = 0) -> list[int]:
    """The answers of filters, each asked for all hashes."""
    runs = np.array([[0, len(hashes)]] * len(places), np.int64)
    answers = np.full(len(places), 9, np.uint8)
    array, bounds = np.array(hashes, np.uint64), [(at, at + size) for at, size in places]
    native.ask(data, base, np.array(bounds, np.int64), 0, REST, array, runs, answers)
    found = [int(answer) for answer in answers]
    assert by_numpy(data, base, np.array(bounds, np.int64), False, array, runs) == found
    # The same, as if header and bitset had been modules of their own.
    for (at, size), answer in zip(places, found, strict=True):
        if answer != UNUSUAL:
            three = np.array([at, at + size % 32, at + size], np.int64)
            native.ask(data, base, three, 1, REST, array, runs[:1], answers[:1])
            assert answers[0] == answer
            assert by_numpy(data, base, three, True, array, runs[:1]) == [answer]
    return found


def by_numpy(
    data: bytes, base: int, bounds: Numbers, is_opened: bool, hashes: Hashes, runs: Numbers
) -> list[int]:
    """The answers of the twin of the kernel."""
    answers = np.full(len(runs), 9, np.uint8)
    numpy_loops.ask(data, base, bounds, is_opened, REST, hashes, runs, answers)
    found: list[int] = answers.tolist()
    return found


@given(st.lists(_hashes, min_size=1, max_size=4), _hashes, st.integers(0, 9), st.integers(1, 9))
def test_answers_are_those_of_the_filters(
    inserted: list[list[int]], asked: list[int], base: int, blocks: int
) -> None:
    filters, data, places = [], b"", []
    for some in inserted:
        one = SplitBlockBloomFilter(blocks)
        for value in some:
            one.insert_hash(value)
        encoded = encode_bloom_filter(one, None)
        places.append((base + len(data), len(encoded)))
        data += encoded
        filters.append(one)
    for hashes in (asked, [*asked, *inserted[-1]]):
        wanted = [int(any(one.check_hash(h) for h in hashes)) for one in filters]
        assert ask(data, places, hashes, base) == wanted


def test_each_filter_is_checked_for_its_own_run() -> None:
    one = SplitBlockBloomFilter(4)
    hashes = [hash_value(bytes([i])) for i in range(6)]
    one.insert_hash(hashes[3])
    data = encode_bloom_filter(one, None)
    runs = np.array([[0, 3], [3, 4], [4, 6], [0, 6], [2, 2]], np.int64)
    answers = np.full(5, 9, np.uint8)
    native.ask(
        data,
        0,
        np.array([(0, len(data))] * 5),
        0,
        REST,
        np.array(hashes, np.uint64),
        runs,
        answers,
    )
    assert answers.tolist() == [NONE, SOME, NONE, SOME, 0]
    bounds = np.array([(0, len(data))] * 5)
    assert by_numpy(data, 0, bounds, False, np.array(hashes, np.uint64), runs) == answers.tolist()


def test_long_runs_are_answered_like_short_ones() -> None:
    one = SplitBlockBloomFilter(8)
    one.insert_hashes(np.arange(1, 50, dtype=np.uint64) << np.uint64(33))
    data, hashes = encode_bloom_filter(one, None), list(range(0, 2**40, 2**33))
    assert ask(data, [(0, len(data))], hashes[:9]) == [SOME]
    assert ask(data, [(0, len(data))], hashes[:1]) == ask(data, [(0, len(data))], hashes[:1] * 40)
    assert ask(data, [(0, len(data))] * 3, hashes) == [SOME] * 3


@given(st.binary(min_size=1, max_size=80), st.data())
def test_no_bytes_but_a_whole_filter_are_answered(noise: bytes, data: st.DataObject) -> None:
    """Whatever is read stands in the place: bytes behind it make no difference."""
    start = data.draw(st.integers(0, len(noise) - 1))
    length = data.draw(st.integers(1, len(noise) - start))
    content = data.draw(st.sampled_from([noise, b"\x15" + noise, b"\x15\x40" + REST]))
    length = min(length, len(content) - start)
    if length > 0:
        assert ask(content, [(start, length)], [1]) == [UNUSUAL]


@given(st.integers(-(2**62), 2**62 - 1), st.integers(0, 3))
def test_a_size_must_be_the_bitsets(size: int, more: int) -> None:
    zigzag = (size << 1 ^ size >> 63) & (2**63 - 1)
    number = bytearray()
    while zigzag >= 0x80:
        number.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    header = b"\x15" + bytes([*number, zigzag]) + REST
    stored = header + bytes(32 + more)
    is_right = size == 32 and more == 0
    assert ask(stored, [(0, len(stored))], [1]) == [NONE if is_right else UNUSUAL]


def test_any_other_byte_of_a_header_is_unusual() -> None:
    stored = _HEADER + bytes(32)
    for place in range(len(_HEADER)):
        for mask in (1, 4, 0x80):
            other = bytearray(stored)
            other[place] ^= mask
            assert ask(bytes(other), [(0, len(other))], [1]) == [UNUSUAL]
