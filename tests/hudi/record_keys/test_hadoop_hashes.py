"""The two hashes against Hadoop's own values."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.hadoop_hashes import hash_key, positions
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from tests.hudi.vectors import cases


@pytest.mark.parametrize("case", cases("hash.json"), ids=lambda case: case["hash"])
def test_hashes_are_those_of_hadoop(case: dict[str, Any]) -> None:
    texts, seeds, wanted = zip(*case["items"], strict=True)
    keys = [base64.b64decode(text) for text in texts]
    kind = HashType(case["hash_type"])
    unsigned = [h % 2**32 for h in wanted]
    assert [hash_key(kind, k, s) for k, s in zip(keys, seeds, strict=True)] == unsigned


@pytest.mark.parametrize("case", cases("positions.json"), ids=lambda case: str(case["bits"]))
def test_positions_are_those_of_hadoop(case: dict[str, Any]) -> None:
    kind, size = HashType(case["hash_type"]), case["bits"]
    for key, wanted in zip(case["keys"], case["positions"], strict=True):
        assert list(positions(kind, key.encode(), case["num_hashes"], size)) == wanted


def test_packed_keys_hold_every_key() -> None:
    packed = PackedKeys.of([b"a", "é".encode(), b"long" * 9])
    assert packed.offsets.tolist() == [0, 1, 3, 39]
    assert bytes(packed.part(1, 2).data[1:3]).decode() == "é"
    assert len(packed.part(1, 3)) == 2
