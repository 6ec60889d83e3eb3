"""Record keys as bytes: what is hashed, what is refused, and how Java orders them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.packed_keys import (
    PackedKeys,
    hash_key,
    java_order,
    key_bytes,
    keys_bytes,
    positions,
)
from tests.hudi.vectors import cases


@given(st.lists(st.binary(min_size=1, max_size=9), max_size=20), st.data())
def test_keys_are_packed_and_taken_apart(keys: list[bytes], data: st.DataObject) -> None:
    packed = PackedKeys.of(keys)

    def unpacked(found: PackedKeys) -> list[bytes]:
        bounds = zip(found.offsets[:-1], found.offsets[1:], strict=True)
        return [found.data[start:end].tobytes() for start, end in bounds]

    assert unpacked(packed) == keys
    start = data.draw(st.integers(0, len(keys)))
    stop = data.draw(st.integers(start, len(keys)))
    assert unpacked(packed.part(start, stop)) == keys[start:stop]


@pytest.mark.parametrize("key", ["", "half \ud800 of a pair", 5])
def test_a_key_that_hudi_refuses_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(PolicyError) as caught:
        key_bytes(key)
    assert "half \ud800" not in str(caught.value)


def test_one_text_is_not_taken_for_its_letters() -> None:
    with pytest.raises(PolicyError, match="one text"):
        keys_bytes("abc")
    assert keys_bytes(["a", "é"]) == [b"a", "é".encode()]


@given(st.text(min_size=1), st.text(min_size=1))
def test_keys_are_ordered_by_utf_16_as_in_java(one: str, other: str) -> None:
    def utf_16(text: str) -> bytes:
        return text.encode("utf-16-be")

    ours = java_order(one.encode()) < java_order(other.encode())
    assert ours == (utf_16(one) < utf_16(other))


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
