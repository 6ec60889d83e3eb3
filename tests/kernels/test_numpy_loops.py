"""The loops in C and by numpy give one result, for damaged bytes too."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels import extension, numpy_loops
from testing.steps import steps_of

native = extension.native
pytestmark = pytest.mark.skipif(native is None, reason="needs the C extension")
of_one_length = st.integers(0, 70).flatmap(
    lambda length: st.lists(st.binary(min_size=length, max_size=length), max_size=40)
)
values = st.lists(st.binary(max_size=70), max_size=40) | of_one_length
hashes = st.lists(st.integers(0, 2**64 - 1), max_size=200).map(lambda h: np.array(h, np.uint64))


def _bytes(content: bytes) -> np.ndarray:
    return np.frombuffer(content, np.uint8)


def _plain(values: list[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


@given(values, st.sampled_from([0, 4]), st.integers(0, 5), st.sampled_from([np.int32, np.int64]))
def test_hashes_of_spans(values: list[bytes], prefix: int, first: int, dtype: type) -> None:
    parts = [b"x" * first, *(b"#" * prefix + value for value in values)]
    offsets = np.cumsum([len(part) for part in parts]).astype(dtype)
    found, wanted = (np.zeros(len(values), np.uint64) for _ in range(2))
    numpy_loops.hash_spans(offsets, prefix, _bytes(b"".join(parts)), found)
    native.hash_spans(offsets.astype(np.int64), prefix, _bytes(b"".join(parts)), wanted)
    assert found.tolist() == wanted.tolist()


@given(st.integers(1, 80), st.data())
def test_hashes_of_rows(width: int, data: st.DataObject) -> None:
    content = data.draw(st.binary(max_size=30 * width))
    rows = _bytes(content)[: len(content) // width * width].reshape(-1, width)
    found, wanted = (np.zeros(len(rows), np.uint64) for _ in range(2))
    numpy_loops.hash_rows(rows, found)
    native.hash_rows(rows, width, wanted)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("width", [0, 1, 3, 4, 7, 8, 12, 31, 32, 33, 36, 63, 64, 100, 256, 257])
@pytest.mark.parametrize("prefix", [0, 4])
def test_hashes_of_many_rows(width: int, prefix: int) -> None:
    """Enough of them for numpy's steps along all rows, and one less."""
    step = prefix + width
    for count in (100 + 10 * width, 99 + 10 * width):
        data = np.random.default_rng(width).integers(0, 256, count * step, np.uint8)
        offsets = np.arange(count + 1) * step
        found, wanted = (np.zeros(count, np.uint64) for _ in range(2))
        numpy_loops.hash_spans(offsets, prefix, data, found)
        native.hash_spans(offsets, prefix, data, wanted)
        assert found.tolist() == wanted.tolist()


def test_wide_rows_take_few_steps() -> None:
    rows = np.zeros((5, 100_000), np.uint8)
    assert steps_of(lambda: numpy_loops.hash_rows(rows, np.zeros(5, np.uint64))) < 100


@given(st.integers(1, 100), hashes, hashes)
def test_bits_and_answers_of_a_filter(z: int, inserted: np.ndarray, asked: np.ndarray) -> None:
    ours, theirs = (np.zeros((z, 8), np.uint32) for _ in range(2))
    for part in np.array_split(inserted, 2):
        numpy_loops.insert_hashes(ours, part)
        native.insert_hashes(theirs, part)
    assert ours.tolist() == theirs.tolist()
    every = np.concatenate([inserted, asked])
    found, wanted = (np.zeros(len(every), np.bool_) for _ in range(2))
    numpy_loops.check_hashes(ours, every, found)
    native.check_hashes(theirs, every, wanted)
    assert found.tolist() == wanted.tolist()
    assert found[: len(inserted)].all()


@given(values, st.integers(-2, 2), st.binary(max_size=6), st.integers(0, 8))
def test_offsets_of_byte_arrays(values: list[bytes], more: int, end: bytes, cut: int) -> None:
    stored = _plain(values)
    data = _bytes(stored[: max(0, len(stored) - cut)] + end)
    found, wanted = (np.zeros(max(0, len(values) + more) + 1, np.int64) for _ in range(2))
    last = numpy_loops.byte_array_offsets(data, found)
    assert last == native.byte_array_offsets(data, len(wanted) - 1, wanted)
    if last != numpy_loops.DAMAGED:
        assert found.tolist() == wanted.tolist()


def _packed(width: int) -> st.SearchStrategy[bytes]:
    """One group of eight levels."""
    return st.binary(min_size=width, max_size=width).map(lambda bits: bytes([1 << 1 | 1]) + bits)


def _repeated() -> st.SearchStrategy[bytes]:
    return st.tuples(st.integers(0, 100), st.integers(0, 3)).map(
        lambda run: (
            bytes([run[0] << 1, run[1]])
            if run[0] < 64
            else bytes([run[0] << 1 & 0x7F | 0x80, run[0] >> 6, run[1]])
        )
    )


@given(st.integers(1, 8), st.integers(0, 3), st.integers(0, 300), st.data())
def test_counts_of_levels(width: int, wanted: int, count: int, data: st.DataObject) -> None:
    runs = st.lists(st.one_of(_packed(width), _repeated(), st.binary(max_size=7)), max_size=12)
    levels = _bytes(b"".join(data.draw(runs)))
    found = numpy_loops.count_level(levels, width, wanted, count)
    assert found == native.count_level(levels, width, wanted, count)


@pytest.mark.parametrize("header", [0, 1], ids=["repeated", "packed"])
def test_a_run_of_no_levels_is_damage(header: int) -> None:
    levels = _bytes(bytes([header, 1, 8 << 1, 1]))
    for kernels in (numpy_loops, native):
        assert kernels.count_level(levels, 1, 1, 8) == numpy_loops.DAMAGED
