"""Rows of a Roaring bitmap, written here container by container, and by Paimon's Java code."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.paimon.version_0_9 import MAX_ROWS, read_rows

CONTAINER_ROWS = 1 << 16


def written(rows: set[int], *, runs: bool) -> bytes:
    """A bitmap of these rows; with ``runs`` every other container is of runs."""
    highs = sorted({row >> 16 for row in rows})
    heads, bodies, flags = b"", [], 0
    for ordinal, high in enumerate(highs):
        low = sorted(row & 0xFFFF for row in rows if row >> 16 == high)
        heads += struct.pack("<HH", high, len(low) - 1)
        if runs and ordinal % 2 == 0:
            flags |= 1 << ordinal
            bodies.append(_runs(low))
        else:
            bodies.append(_array(low) if len(low) <= 4096 else _bit_set(low))
    if not runs:
        cookie = struct.pack("<II", 12346, len(highs))
    else:
        size = -(-len(highs) // 8)
        cookie = struct.pack("<HH", 12347, len(highs) - 1) + flags.to_bytes(size, "little")
    places = bytes(4 * len(highs)) if not runs or len(highs) >= 4 else b""
    return b"".join((cookie, heads, places, *bodies))


def _array(low: list[int]) -> bytes:
    return struct.pack(f"<{len(low)}H", *low)


def _bit_set(low: list[int]) -> bytes:
    return sum(1 << row for row in low).to_bytes(8192, "little")


def _runs(low: list[int]) -> bytes:
    starts = [row for row in low if row - 1 not in set(low)]
    ends = [row for row in low if row + 1 not in set(low)]
    pairs = [half for start, end in zip(starts, ends, strict=True) for half in (start, end - start)]
    return struct.pack(f"<H{len(pairs)}H", len(starts), *pairs)


def rows_of(bits: int) -> set[int]:
    return {row for row, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"}


#: Rows as runs that begin somewhere in the first five containers.
SPANS = st.sets(
    st.tuples(st.integers(0, 5 * CONTAINER_ROWS - 300), st.integers(1, 200)), min_size=1, max_size=6
).map(lambda spans: {row for start, length in spans for row in range(start, start + length)})


@given(rows=SPANS, runs=st.booleans())
def test_rows_come_back(rows: set[int], runs: bool) -> None:
    last = max(rows)
    data = memoryview(written(rows, runs=runs) + b"the next bitmap")
    assert rows_of(read_rows(data, last + 1)) == rows
    with pytest.raises(FormatError):
        read_rows(data, last)


@pytest.mark.parametrize("count", [4096, 4097, CONTAINER_ROWS])
def test_a_full_container_is_a_bit_set(count: int) -> None:
    rows = set(range(CONTAINER_ROWS, CONTAINER_ROWS + count))
    found = read_rows(memoryview(written(rows, runs=False)), 2 * CONTAINER_ROWS)
    assert found == ((1 << count) - 1) << CONTAINER_ROWS


@given(data=st.binary(max_size=200), start=st.sampled_from([b"", b"\x3a\x30\0\0", b"\x3b\x30"]))
def test_random_bytes_are_rows_or_an_error(data: bytes, start: bytes) -> None:
    with contextlib.suppress(SecureBloomError):
        assert read_rows(memoryview(start + data), 100_000) >> 100_000 == 0


def test_a_bitmap_that_is_cut_is_an_error() -> None:
    whole = written({1, 5, 70_000}, runs=True)
    for length in range(len(whole)):
        with pytest.raises(FormatError):
            read_rows(memoryview(whole[:length]), 100_000)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x3a\x30\0\0" + struct.pack("<I", 1 << 31), "wanted"),
        (b"\x3a\x30\0\0\2\0\0\0" + struct.pack("<4H", 1, 0, 1, 0) + bytes(12), "container 1 after"),
        (b"\x3b\x30\0\0\1" + struct.pack("<5H", 0, 0, 1, 65535, 1), "leaves its container"),
    ],
)
def test_a_bitmap_that_makes_no_sense_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_rows(memoryview(data), 200_000)


def test_a_few_bytes_do_not_take_all_memory() -> None:
    with pytest.raises(UnsupportedFeatureError, match="rows"):
        read_rows(memoryview(written({1}, runs=False)), MAX_ROWS + 1)
