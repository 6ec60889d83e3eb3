"""What bounds leave of the values sought, chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.parquet import chunk_fields as slots
from tests.kernels import ABSENT, native, needs_native

pytestmark = needs_native

ROWS = 10
PATH = b"\x18\x01a"
#: A chunk with a filter and no bounds.
USUAL = {
    slots.NUM_VALUES: ROWS,
    slots.DATA_PAGE_OFFSET: 100,
    slots.BLOOM_FILTER_OFFSET: 500,
    slots.BLOOM_FILTER_LENGTH: 47,
}


def run(
    values: Sequence[bytes],
    bounds: tuple[bytes, bytes] | None = None,
    *,
    older: bool = False,
    path: bytes = PATH,
    order: tuple[int, bool, bool] = (0, False, False),
    has_order: bool = True,
    has_old_order: bool = False,
    may_be_null: bool = True,
    histogram: bytes | None = None,
    **fields: Any,
) -> list[int]:
    """The run of ascending values that one chunk's bounds leave."""
    row = np.full(slots.SLOTS, ABSENT, np.int64)
    for place, number in USUAL.items():
        row[place] = number
    data = path
    row[slots.PATH_IN_SCHEMA : slots.PATH_IN_SCHEMA + 2] = 0, len(path)
    if bounds is not None:
        place = slots.MIN if older else slots.MIN_VALUE
        for bound in bounds:
            row[place : place + 2] = len(data), len(data) + len(bound)
            data, place = data + bound, place + 2
    if histogram is not None:
        row[slots.DEFINITION_LEVEL_HISTOGRAM] = len(data)
        data += histogram
    for name, number in fields.items():
        row[getattr(slots, name)] = number
    found = np.empty((1, 2), np.int64)
    width, is_little, is_signed = order
    bits = (is_little, is_signed, has_order, has_old_order, may_be_null)
    native.leave(
        data,
        row,
        np.array([ROWS]),
        PATH,
        b"".join(values),
        np.cumsum([0, *map(len, values)], dtype=np.int64),
        width,
        sum(1 << place for place, is_set in enumerate(bits) if is_set),
        found,
    )
    result: list[int] = found[0].tolist()
    return result


def between(values: Sequence[Any], low: Any, high: Any) -> list[int]:
    """From and up to which of the values lie between bounds."""
    return [sum(v < low for v in values), sum(v <= high for v in values)]


_texts = st.binary(max_size=3) | st.sampled_from([b"", b"\x80", b"\x7f\xff", b"\xff" * 4])


@given(st.lists(_texts, min_size=1, max_size=8), _texts, _texts)
def test_bytes_in_their_order(values: list[bytes], one: bytes, other: bytes) -> None:
    values.sort()
    low, high = sorted([one, other])
    assert run(values, (low, high)) == between(values, low, high)


def _near(low: int, high: int) -> st.SearchStrategy[int]:
    edges = [low, low + 1, -1, 0, 1, 127, 128, 255, 256, high - 1, high]
    return st.integers(low, high) | st.sampled_from([e for e in edges if low <= e <= high])


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("width", "is_little"), [(4, True), (8, True), (1, False), (13, False)])
@given(data=st.data())
def test_numbers_in_their_order(
    width: int, is_little: bool, signed: bool, data: st.DataObject
) -> None:
    limits = (-(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1)
    numbers = _near(*limits) if signed else _near(0, 2 ** (8 * width) - 1)
    values = sorted(data.draw(st.lists(numbers, min_size=1, max_size=8)))
    low, high = sorted([data.draw(numbers), data.draw(numbers)])

    def encoded(number: int) -> bytes:
        return number.to_bytes(width, "little" if is_little else "big", signed=signed)

    sought, order = [encoded(v) for v in values], (width, is_little, signed)
    assert run(sought, (encoded(low), encoded(high)), order=order) == between(values, low, high)
    if low < high:
        assert run(sought, (encoded(high), encoded(low)), order=order) == [0, len(values)]
    assert run(sought, (encoded(low)[1:], encoded(high)), order=order) == [0, len(values)]
    assert run(sought, (encoded(low), encoded(high) + b"\0"), order=order) == [0, len(values)]


UNDECIDED = [-1, 0]
ALL, NOTHING = [0, 2], [0, 0]


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({}, ALL),
        ({"NULL_COUNT": 9}, ALL),
        ({"NULL_COUNT": 10}, NOTHING),
        ({"NULL_COUNT": 10, "BLOOM_FILTER_OFFSET": ABSENT}, NOTHING),
        ({"NUM_VALUES": 0, "NULL_COUNT": 0}, UNDECIDED),
        ({"NUM_VALUES": 9}, UNDECIDED),
        ({"NUM_VALUES": 11, "NULL_COUNT": 11}, UNDECIDED),
        ({"NUM_VALUES": -1}, UNDECIDED),
        ({"NUM_VALUES": -1, "NULL_COUNT": -1}, UNDECIDED),
        ({"NUM_VALUES": ABSENT, "NULL_COUNT": ABSENT}, UNDECIDED),
        ({"FILE_PATH": 0}, UNDECIDED),
        ({"DATA_PAGE_OFFSET": -1}, UNDECIDED),
        ({"BLOOM_FILTER_OFFSET": ABSENT}, UNDECIDED),
        ({"BLOOM_FILTER_LENGTH": ABSENT}, UNDECIDED),
        ({"BLOOM_FILTER_OFFSET": -1}, UNDECIDED),
        ({"BLOOM_FILTER_LENGTH": -1}, UNDECIDED),
        ({"BLOOM_FILTER_LENGTH": 0}, ALL),
        ({"DICTIONARY_PAGE_OFFSET": 54}, UNDECIDED),
        ({"DICTIONARY_PAGE_OFFSET": 53}, ALL),
        ({"DICTIONARY_PAGE_OFFSET": 100}, ALL),
        ({"DICTIONARY_PAGE_OFFSET": 2**62 - 1}, ALL),
        ({"DICTIONARY_PAGE_OFFSET": 0}, ALL),
        ({"DICTIONARY_PAGE_OFFSET": -(2**62)}, ALL),
        ({"PATH_IN_SCHEMA": ABSENT}, UNDECIDED),
    ],
)
def test_chunks_to_be_looked_at(fields: dict[str, Any], left: list[int]) -> None:
    assert run([b"b", b"c"], **fields) == left
    # Bounds exclude whether or not there is a filter.
    excluded = UNDECIDED if {"NUM_VALUES", "FILE_PATH", "PATH_IN_SCHEMA"} & fields.keys() else None
    found = run([b"b", b"c"], (b"x", b"y"), **fields)
    assert found == excluded or found[0] == found[1] >= 0


def _longs(*numbers: int) -> bytes:
    """A list of i64."""
    return bytes([len(numbers) << 4 | 6, *(2 * number for number in numbers)])


@pytest.mark.parametrize(
    ("histogram", "left"),
    [
        (_longs(10, 0), NOTHING),
        (_longs(4, 6, 0), NOTHING),
        (_longs(), NOTHING),
        (_longs(9, 1), ALL),
        (_longs(9, 0), ALL),
        (_longs(0, 10), ALL),
        (_longs(10, 0)[:-1], ALL),
        (b"", ALL),
    ],
)
def test_nulls_alone_that_levels_contradict(histogram: bytes, left: list[int]) -> None:
    assert run([b"b", b"c"], NULL_COUNT=ROWS, histogram=histogram) == left


def test_nulls_alone_that_the_schema_or_bounds_contradict() -> None:
    assert run([b"b", b"c"], NULL_COUNT=ROWS, may_be_null=False) == ALL
    assert run([b"b", b"c"], (b"c", b"c"), NULL_COUNT=ROWS) == [1, 2]
    assert run([b"b", b"c"], (b"c", b"c"), NULL_COUNT=ROWS, older=True) == ALL


@pytest.mark.parametrize("path", [b"", b"\x18\x01", b"\x18\x01b", PATH + b"a"])
def test_a_chunk_of_another_column(path: bytes) -> None:
    assert run([b"b"], path=path) == UNDECIDED


def test_which_bounds_count() -> None:
    values, bounds = [b"b", b"d"], (b"c", b"c")
    assert run(values, bounds) == [1, 1]
    assert run(values, bounds, has_order=False) == ALL
    assert run(values, bounds, has_order=False, has_old_order=True) == ALL
    assert run(values, bounds, older=True) == ALL
    assert run(values, bounds, older=True, has_old_order=True) == [1, 1]
    assert run(values, bounds, older=True, has_order=False, has_old_order=True) == [1, 1]
    for missing in ("MIN_VALUE", "MAX_VALUE"):
        assert run(values, bounds, **dict[str, Any]({missing: ABSENT})) == ALL
    assert run(values, bounds, older=True, has_old_order=True, MAX=ABSENT) == ALL
