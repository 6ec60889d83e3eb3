"""Compiled code of Hudi's filter: Hadoop's hashes, and no key that went in is missed."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.hadoop_hashes import hash_key, positions
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.kernels import hudi_bloom
from tests.hudi.vectors import cases

KEYS = [b"a", b"key-000001", bytes(range(40))]


def compiled(hash_type: HashType, key: bytes, seed: int) -> int:
    data, end = np.frombuffer(key, np.uint8), np.uint64(len(key))
    is_murmur = hash_type is HashType.MURMUR
    return int(hudi_bloom.hash_key(is_murmur, data, np.uint64(0), end, np.uint32(seed % 2**32)))


@pytest.mark.parametrize("case", cases("hash.json"), ids=lambda case: case["hash"])
def test_hashes_are_those_of_hadoop(case: dict[str, Any]) -> None:
    kind = HashType(case["hash_type"])
    for text, seed, wanted in case["items"]:
        assert compiled(kind, base64.b64decode(text), seed) == wanted % 2**32


@given(
    kind=st.sampled_from(HashType),
    key=st.binary(max_size=60),
    seed=st.integers(-(2**31), 2**31 - 1),
)
def test_compiled_hashes_are_those_of_single_keys(kind: HashType, key: bytes, seed: int) -> None:
    assert compiled(kind, key, seed) == hash_key(kind, key, seed)


@pytest.mark.parametrize("kind", HashType)
def test_the_bits_of_a_key_are_set_in_its_row_and_asked_for_in_all(kind: HashType) -> None:
    packed, found = PackedKeys.of(KEYS), np.zeros(len(KEYS), np.bool_)
    rows, shape = np.zeros((2, 32), np.uint8), (np.uint32(251), 4, kind is HashType.MURMUR)
    hudi_bloom.insert_keys(rows, *shape, packed.offsets, packed.data, 0, 1)
    for i, key in enumerate(KEYS):
        for bit in positions(kind, key, 4, 251):
            assert rows[i % 2, bit >> 3] >> (bit & 7) & 1
    hudi_bloom.check_keys(rows, *shape, packed.offsets, packed.data, found)
    assert found.all()
    hudi_bloom.check_keys(np.zeros_like(rows), *shape, packed.offsets, packed.data, found)
    assert not found.any()
