"""Values of pages in C: levels, byte arrays, indices of a dictionary, and fingerprints."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def looked_up(data: bytes, entries: int, values: int) -> list[int] | None:
    """The indices in ``data``, of so many entries; None for damage."""
    places = np.zeros(values, np.uint32)
    # Entry i stands at 10 * i, so that an index and a place are not the same number.
    bounds = np.arange(0, 10 * entries + 1, 10)
    is_sound = native.look_up(np.frombuffer(data, np.uint8), bounds, places) == 0
    return [place // 10 for place in places.tolist()] if is_sound else None


@needs_native
@given(st.integers(0, 32), st.data())
def test_indices_come_in_runs_of_both_kinds(width: int, data: st.DataObject) -> None:
    entries = min(2**width, 5000)
    index = st.integers(0, entries - 1)
    runs = data.draw(
        st.lists(
            st.tuples(index, st.integers(1, 300)) | st.lists(index, min_size=8, max_size=64),
            min_size=1,
            max_size=6,
        )
    )
    encoded, wanted = bytes([width]), []
    for run in runs:
        if isinstance(run, tuple):
            encoded += repeated(*run, width)
            wanted += [run[0]] * run[1]
        else:
            whole = run[: len(run) // 8 * 8]
            encoded += packed(whole, width)
            wanted += whole
    assert looked_up(encoded, entries, len(wanted)) == wanted


@needs_native
def test_what_is_left_of_the_last_run_is_not_looked_at() -> None:
    assert looked_up(b"\x04" + packed([3, 1, 2], 4), 4, 3) == [3, 1, 2]
    assert looked_up(b"\x04" + repeated(3, 9, 4), 4, 2) == [3, 3]
    # The bytes of numbers that fill up a group may be missing.
    assert looked_up((b"\x08" + packed([3, 1, 2], 8))[:-5], 4, 3) == [3, 1, 2]


@needs_native
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04",
        b"\x04" + repeated(3, 4, 4),
        b"\x04" + packed([1] * 4, 4)[:2],
        b"\x04" + repeated(4, 5, 4),
        b"\x04" + packed([0, 0, 0, 4, 0], 4),
        b"\x04" + repeated(0, 0, 4) + repeated(1, 5, 4),
        b"\x04\x01" + repeated(1, 5, 4),
        b"\x21" + repeated(1, 5, 33),
        b"\x03\xfe\xff\xff\xff\xff\x01\x01",
        # One bit, and a number of two.
        b"\x01" + repeated(2, 5, 1),
        b"\x10\x0a\x01",
    ],
    ids=[
        "nothing",
        "no run",
        "too few values",
        "half a group",
        "run beyond the entries",
        "index beyond the entries",
        "run of none",
        "no group",
        "33 bits",
        "endless count",
        "number wider than said",
        "half a number",
    ],
)
def test_damage_is_told(data: bytes) -> None:
    assert looked_up(data, 4, 5) is None


@needs_native
@given(st.lists(st.binary(max_size=40), max_size=30), st.randoms())
def test_values_are_copied_in_any_order(values: list[bytes], rng: object) -> None:
    stored = b"".join(struct.pack("<I", len(value)) + value for value in values)
    starts = [0, *itertools.accumulate(4 + len(value) for value in values)][:-1]
    order = [rng.randrange(len(values)) for _ in range(2 * len(values))]  # type: ignore[attr-defined]
    data = np.frombuffer(stored, np.uint8)
    places = np.array([starts[i] for i in order], np.uint32)
    ends = np.zeros(len(order), np.int32)
    wanted = [b"head", *(values[i] for i in order)]
    size = int(native.enter_ends(data, places, 4, ends))
    assert [4, *ends.tolist()] == list(itertools.accumulate(map(len, wanted)))
    into = np.frombuffer(bytearray(b"head" + bytes(size - 4)), np.uint8)
    assert native.copy_values(data, places, 4, into) == size
    assert into.tobytes() == b"".join(wanted)


@needs_native
def test_ends_are_counted_beyond_32_bits() -> None:
    data = np.frombuffer(struct.pack("<I", 2**20) + bytes(2**20), np.uint8)
    places, ends = np.zeros(3000, np.uint32), np.zeros(3000, np.int32)
    assert native.enter_ends(data, places, 0, ends) == 3000 * 2**20
    assert native.enter_ends(data[:-1], places, 0, ends) == DAMAGED
    assert native.copy_values(data, places, 0, bytearray(10)) == DAMAGED


def prints(values: list[bytes]) -> np.ndarray:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    found = np.empty(len(values), np.uint64)
    native.fingerprints(offsets, np.frombuffer(b"".join(values), np.uint8), found)
    return found


def look(page: bytes, count: int, width: int, sought: list[bytes]) -> int:
    wanted = np.sort(prints(sought))
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
