"""Indices of dictionary entries are looked up, and the values set one behind the other."""

from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels.dictionary import copy_values, enter_ends, look_up
from tests.kernels.hybrid import packed, repeated


def looked_up(data: bytes, entries: int, values: int) -> list[int] | None:
    """The indices in ``data``, of so many entries; None for damage."""
    places = np.zeros(values, np.uint32)
    # Entry i stands at 10 * i, so that an index and a place are not the same number.
    bounds = np.arange(0, 10 * entries + 1, 10)
    is_sound = look_up(np.frombuffer(data, np.uint8), bounds, places)
    return [place // 10 for place in places.tolist()] if is_sound else None


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


def test_what_is_left_of_the_last_run_is_not_looked_at() -> None:
    assert looked_up(b"\x04" + packed([3, 1, 2], 4), 4, 3) == [3, 1, 2]
    assert looked_up(b"\x04" + repeated(3, 9, 4), 4, 2) == [3, 3]
    # The bytes of numbers that fill up a group may be missing.
    assert looked_up((b"\x08" + packed([3, 1, 2], 8))[:-5], 4, 3) == [3, 1, 2]


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


@given(st.lists(st.binary(max_size=40), max_size=30), st.randoms())
def test_values_are_copied_in_any_order(values: list[bytes], rng: object) -> None:
    stored = b"".join(struct.pack("<I", len(value)) + value for value in values)
    starts = [0, *itertools.accumulate(4 + len(value) for value in values)][:-1]
    order = [rng.randrange(len(values)) for _ in range(2 * len(values))]  # type: ignore[attr-defined]
    data = np.frombuffer(stored, np.uint8)
    places = np.array([starts[i] for i in order], np.uint32)
    ends = np.zeros(len(order), np.int32)
    wanted = [b"head", *(values[i] for i in order)]
    size = int(enter_ends(data, places, 4, ends))
    assert [4, *ends.tolist()] == list(itertools.accumulate(map(len, wanted)))
    into = np.frombuffer(bytearray(b"head" + bytes(size - 4)), np.uint8)
    assert copy_values(data, places, 4, into) == size
    assert into.tobytes() == b"".join(wanted)


def test_ends_are_counted_beyond_32_bits() -> None:
    data = np.frombuffer(struct.pack("<I", 2**30), np.uint8)
    places, ends = np.zeros(3, np.uint32), np.zeros(3, np.int32)
    assert enter_ends(data, places, 0, ends) == 3 * 2**30
