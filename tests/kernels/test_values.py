"""Values of pages in C: levels, byte arrays, and the search for values."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom.xxh64 import hash_value
from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import DAMAGED, byte_array_offsets, count_level
from tests.kernels.hybrid import packed, repeated

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason="needs the C extension")


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


def look(page: bytes, count: int, width: int, sought: list[bytes]) -> int:
    wanted = np.sort(np.array([hash_value(value) for value in sought], np.uint64))
    marks = np.zeros(16, np.uint8)
    for h in wanted.tolist():
        marks[(h & 127) >> 3] |= 1 << (h & 7)
    return int(native.look_for(np.frombuffer(page, np.uint8), count, width, marks, wanted))


def plain(values: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


@needs_native
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=10), st.data())
def test_a_value_that_is_there_is_found(values: list[bytes], data: st.DataObject) -> None:
    sought = data.draw(st.sampled_from(values))
    assert look(plain(values), len(values), 0, [sought, b"another value"]) == 1
    same = [value.ljust(20, b"\0") for value in values]
    assert look(b"".join(same), len(same), 20, [sought.ljust(20, b"\0")]) == 1


@needs_native
def test_values_that_are_not_there_are_not_found() -> None:
    values = [f"value {n}".encode() for n in range(500)]
    assert look(plain(values), 500, 0, [b"value 500", b"value", b""]) == 0


@needs_native
def test_a_page_of_another_length_is_damage() -> None:
    page = plain([b"one", b"two"])
    for damaged, count in ((page, 1), (page, 3), (page[:-1], 2), (page + b"\0", 2)):
        assert look(damaged, count, 0, [b"four"]) == DAMAGED
