"""The C code of Hudi's filter: Hadoop's hashes, and no key that went in is missed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys, positions
from secure_bloom.kernels import extension

native = extension.native

KEYS = [b"a", b"key-000001", bytes(range(40))]


pytestmark = pytest.mark.skipif(native is None, reason="needs the C extension")


def bits_of(kind: HashType, key: bytes, hashes: int, size: int) -> set[int]:
    """The bits that C sets for a key in a row of ``size`` bits."""
    row, keys = bytearray((size + 7) // 8), PackedKeys.of([key])
    shape = (len(row), size, hashes, kind is HashType.MURMUR)
    native.hudi_insert(row, *shape, keys.offsets, keys.data, 0, 0)
    return {bit for bit in range(size) if row[bit >> 3] >> (bit & 7) & 1}


@given(
    kind=st.sampled_from(HashType),
    key=st.binary(min_size=1, max_size=60),
    hashes=st.integers(0, 12),
    size=st.integers(1, 5000),
)
def test_the_bits_of_a_key_are_those_of_single_keys(
    kind: HashType, key: bytes, hashes: int, size: int
) -> None:
    assert bits_of(kind, key, hashes, size) == set(positions(kind, key, hashes, size))


@pytest.mark.parametrize("kind", HashType)
def test_keys_go_into_row_after_row_and_are_asked_for_in_all(kind: HashType) -> None:
    keys, found = PackedKeys.of(KEYS), np.zeros(len(KEYS), np.bool_)
    rows, shape = bytearray(2 * 32), (32, 251, 4, kind is HashType.MURMUR)
    room = np.empty(4, np.uint64)
    native.hudi_insert(rows, *shape, keys.offsets, keys.data, 0, 1)
    for i, key in enumerate(KEYS):
        for bit in positions(kind, key, 4, 251):
            assert rows[32 * (i % 2) + (bit >> 3)] >> (bit & 7) & 1
    native.hudi_check(rows, *shape, keys.offsets, keys.data, room, found)
    assert found.all()
    native.hudi_check(bytes(64), *shape, keys.offsets, keys.data, room, found)
    assert not found.any()


@pytest.mark.parametrize(
    ("row_bytes", "size", "hashes", "offsets"),
    [
        (0, 8, 1, [0, 1]),
        (65, 8, 1, [0, 1]),
        (1, 9, 1, [0, 1]),
        (1, 8, -1, [0, 1]),
        (1, 8, 1, []),
        (1, 8, 1, [1, 0]),
        (1, 8, 1, [-1, 0]),
        (1, 8, 1, [0, 10]),
    ],
)
def test_keys_and_rows_that_do_not_fit_are_refused(
    row_bytes: int, size: int, hashes: int, offsets: list[int]
) -> None:
    keys = (np.array(offsets, np.int64), b"abcdefgh")
    with pytest.raises(ValueError, match="hudi_insert"):
        native.hudi_insert(bytearray(64), row_bytes, size, hashes, 0, *keys, 0, 0)
