"""Values of pages, in C and in numpy: levels, byte arrays, and the search for values."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels import loops, numpy_loops
from secure_bloom.kernels.loops import (
    DAMAGED,
    Sought,
    byte_array_offsets,
    count_level,
    find_values,
    unpack,
)
from tests.kernels.hybrid import packed, repeated


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


def test_a_last_group_that_is_not_whole_is_damage_as_for_arrow() -> None:
    groups = bytes([2 << 1 | 1, 0xFF])
    assert count_level(runs(groups), 1, 1, 8) == DAMAGED
    assert unpacked(groups, 1, 2, 8) == DAMAGED
    assert unpacked(groups + b"\xff", 1, 2, 8) == [1] * 8


@given(st.integers(1, 8), st.data())
def test_levels_come_in_runs_of_both_kinds(width: int, data: st.DataObject) -> None:
    level = st.integers(0, 2**width - 1)
    drawn = data.draw(
        st.lists(
            st.tuples(level, st.integers(1, 300)) | st.lists(level, min_size=8, max_size=64),
            min_size=1,
            max_size=6,
        )
    )
    encoded, levels = [], list[int]()
    for run in drawn:
        if isinstance(run, tuple):
            encoded.append(repeated(*run, width))
            levels += [run[0]] * run[1]
        else:
            whole = run[: len(run) // 8 * 8]
            encoded.append(packed(whole, width))
            levels += whole
    for wanted in {levels[0], 0}:
        found = count_level(runs(*encoded), width, wanted, len(levels))
        assert found == levels.count(wanted)


def plain(values: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def find(page: bytes, count: int, width: int, sought: list[bytes], room: int = 100) -> list[int]:
    """The positions that both ways find; a single number for damage or too many."""
    content, wanted = np.frombuffer(page, np.uint8), Sought.of(sought)
    found, twin = np.zeros(room, np.int64), np.zeros(room, np.int64)
    number = find_values(content, count, width, wanted, found)
    same = numpy_loops.find_values(content, width, wanted.only, wanted.hashes, count, twin)
    assert number == same
    if not 0 <= number <= room:
        return [number]
    assert found[:number].tolist() == twin[:number].tolist()
    return [int(position) for position in found[:number]]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=10), st.data())
def test_values_are_found_where_they_are(values: list[bytes], data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(values))
    for sought in ([one], [one, b"another value that is there nowhere"]):
        places = [i for i, value in enumerate(values) if value in sought]
        assert find(plain(values), len(values), 0, sought) == places
    same = [value.ljust(20, b"\0") for value in values]
    places = [i for i, value in enumerate(same) if value == one.ljust(20, b"\0")]
    assert find(b"".join(same), len(same), 20, [one.ljust(20, b"\0")]) == places


def test_values_that_are_not_there_are_not_found() -> None:
    values = [f"value {n}".encode() for n in range(500)]
    for sought in ([b"value 500"], [b"value 500", b"value", b""], [b""]):
        assert find(plain(values), 500, 0, sought) == []


def test_the_search_ends_where_there_is_no_room() -> None:
    assert find(plain([b"a"] * 9), 9, 0, [b"a"], room=9) == list(range(9))
    assert find(plain([b"a"] * 9), 9, 0, [b"a"], room=8) == [9]
    assert find(plain([b"a"] * 9), 9, 0, [b"a", b"b"], room=0) == [1]


def test_a_page_of_another_length_is_damage() -> None:
    page = plain([b"one", b"two"])
    for damaged, count in ((page, 1), (page, 3), (page[:-1], 2), (page + b"\0", 2)):
        for sought in ([b"four"], [b"four", b"five"]):
            assert find(damaged, count, 0, sought) == [DAMAGED]


def unpacked(stored: bytes, width: int, limit: int, count: int) -> list[int] | int:
    """The numbers that both ways unpack, or what both return instead."""
    content = np.frombuffer(stored, np.uint8)
    numbers, twin = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    found = unpack(content, width, limit, numbers)
    assert found == numpy_loops.unpack(content, width, limit, twin)
    if found != count:
        return found
    assert numbers.tolist() == twin.tolist()
    return [int(number) for number in numbers]


@given(st.integers(0, 32), st.data())
def test_numbers_of_runs_of_both_kinds(width: int, data: st.DataObject) -> None:
    number = st.integers(0, 2**width - 1)
    run = st.tuples(number, st.integers(1, 50)) | st.lists(number, min_size=8, max_size=24)
    encoded, numbers = b"", list[int]()
    for drawn in data.draw(st.lists(run, min_size=1, max_size=4)):
        if isinstance(drawn, tuple):
            encoded += repeated(*drawn, width)
            numbers += [drawn[0]] * drawn[1]
        else:
            encoded += packed(drawn[: len(drawn) // 8 * 8], width)
            numbers += drawn[: len(drawn) // 8 * 8]
    limit = max(numbers) + 1
    assert unpacked(encoded, width, limit, len(numbers)) == numbers
    assert unpacked(encoded, width, limit - 1, len(numbers)) == DAMAGED
    assert unpacked(encoded, width, limit, len(numbers) + 8) == DAMAGED


@given(st.binary(max_size=30), st.integers(0, 32), st.integers(0, 40))
def test_any_bytes_are_unpacked_alike(stored: bytes, width: int, count: int) -> None:
    unpacked(stored, width, 2**32, count)


@given(st.integers(0, 32), st.binary(max_size=40), st.integers(0, 40), st.data())
def test_some_numbers_of_any_runs_are_picked(
    width: int, stored: bytes, count: int, data: st.DataObject
) -> None:
    drawn = data.draw(st.sets(st.integers(0, count - 1), max_size=5)) if count else set()
    ranks, content = np.array(sorted(drawn), np.int64), np.frombuffer(stored, np.uint8)
    limit = data.draw(st.sampled_from([1, 7, 2**32]))
    whole = unpacked(stored, width, limit, count)
    for way in (loops, numpy_loops):
        picked = np.zeros(len(ranks), np.int64)
        found = way.pick_indices(content, width, limit, count, ranks, picked)
        if isinstance(whole, int):
            assert found == DAMAGED
        else:
            assert picked.tolist() == [whole[rank] for rank in ranks]


@given(st.lists(st.binary(max_size=20), max_size=12), st.data())
def test_some_byte_arrays_are_picked(values: list[bytes], data: st.DataObject) -> None:
    places = st.sets(st.integers(0, len(values) - 1), max_size=5) if values else st.just(set())
    ranks = np.array(sorted(data.draw(places)), np.int64)
    stored = plain(values)
    cut = data.draw(st.sampled_from([stored, stored + b"\0", stored[:-1]]))
    for way in (loops, numpy_loops):
        spans = np.zeros(2 * len(ranks), np.int64)
        found = way.pick_spans(np.frombuffer(cut, np.uint8), len(values), ranks, spans)
        if len(cut) != len(stored):
            assert found == DAMAGED
        else:
            starts, ends = spans[::2].tolist(), spans[1::2].tolist()
            assert [stored[a:b] for a, b in zip(starts, ends, strict=True)] == [
                values[rank] for rank in ranks
            ]
