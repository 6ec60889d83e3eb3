"""Record keys as bytes: what is hashed, what is refused, and how Java orders them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.hudi.record_keys.packed_keys import (
    PackedKeys,
    java_order,
    key_bytes,
    keys_bytes,
)


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
