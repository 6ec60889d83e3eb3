"""Values that are sought are found by their fingerprints, and never missed."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels.lookup import NONE, SOME, fingerprints, look_for
from secure_bloom.kernels.plain import DAMAGED


def prints(values: list[bytes]) -> np.ndarray:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    found = np.empty(len(values), np.uint64)
    fingerprints(offsets, np.frombuffer(b"".join(values), np.uint8), found)
    return found


def look(page: bytes, count: int, width: int, sought: list[bytes]) -> int:
    wanted = np.sort(prints(sought))
    marks = np.zeros(16, np.uint8)
    for h in wanted.tolist():
        marks[(h & 127) >> 3] |= 1 << (h & 7)
    return int(look_for(np.frombuffer(page, np.uint8), count, width, marks, wanted))


def plain(values: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=10), st.data())
def test_a_value_that_is_there_is_found(values: list[bytes], data: st.DataObject) -> None:
    sought = data.draw(st.sampled_from(values))
    assert look(plain(values), len(values), 0, [sought, b"another value"]) == SOME
    same = [value.ljust(20, b"\0") for value in values]
    assert look(b"".join(same), len(same), 20, [sought.ljust(20, b"\0")]) == SOME


def test_values_that_are_not_there_are_not_found() -> None:
    values = [f"value {n}".encode() for n in range(500)]
    assert look(plain(values), 500, 0, [b"value 500", b"value", b""]) == NONE


def test_a_page_of_another_length_is_damage() -> None:
    page = plain([b"one", b"two"])
    for damaged, count in ((page, 1), (page, 3), (page[:-1], 2), (page + b"\0", 2)):
        assert look(damaged, count, 0, [b"four"]) == DAMAGED
