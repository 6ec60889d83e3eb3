"""The compiled hash gives what the library of its inventor gives."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.kernels import xxh64


@given(st.lists(st.binary(max_size=100), max_size=8), st.sampled_from([0, 4]))
def test_spans_of_any_length(values: list[bytes], prefix: int) -> None:
    stored = [bytes(prefix) + value for value in values]
    offsets = np.cumsum([0, *map(len, stored)]).astype(np.int64)
    data = np.frombuffer(b"".join(stored), np.uint8)
    hashes = np.empty(len(values), np.uint64)
    xxh64.hash_spans(offsets, prefix, data, hashes)
    assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in values]


@pytest.mark.parametrize(
    ("kernel", "width", "word"),
    [
        (xxh64.hash_4, 4, np.uint32),
        (xxh64.hash_8, 8, np.uint64),
        (xxh64.hash_12, 12, np.uint32),
        (xxh64.hash_16, 16, np.uint64),
        (xxh64.hash_rows, 33, np.uint8),
    ],
)
def test_values_of_one_width(kernel, width: int, word: type) -> None:
    data = np.random.default_rng(5).bytes(50 * width)
    hashes = np.empty(50, np.uint64)
    kernel(np.frombuffer(data, word).reshape(50, -1), hashes)
    values = [data[i * width : (i + 1) * width] for i in range(50)]
    assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in values]
