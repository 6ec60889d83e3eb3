"""Rows in Paimon's manifests: both ways, and as pypaimon-rust writes them."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.lakes.paimon.rows import bounds, decode_row, encode_row, text_of
from secure_bloom.lakes.paimon.schema import AtomicType

VALUES: dict[tuple[str, int | None], st.SearchStrategy[Any]] = {
    ("BOOLEAN", None): st.booleans(),
    ("TINYINT", None): st.integers(-128, 127),
    ("INT", None): st.integers(-(2**31), 2**31 - 1),
    ("BIGINT", None): st.integers(-(2**63), 2**63 - 1),
    ("DOUBLE", None): st.floats(allow_nan=False),
    ("VARCHAR", 9): st.binary(max_size=20),
    ("DECIMAL", 18): st.integers(-(10**18) + 1, 10**18 - 1),
    ("DECIMAL", 38): st.integers(-(10**38) + 1, 10**38 - 1),
    ("TIMESTAMP", 3): st.tuples(st.integers(-(2**40), 2**40), st.just(0)),
    ("TIMESTAMP", 9): st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 999_999)),
}
COLUMNS = st.lists(
    st.sampled_from(sorted(VALUES, key=str)).flatmap(
        lambda kind: st.tuples(st.just(kind), st.none() | VALUES[kind])
    ),
    min_size=1,
    max_size=70,
)


def types(columns: list[Any]) -> list[AtomicType]:
    return [AtomicType(root=root, length=length) for (root, length), _ in columns]


@given(COLUMNS)
def test_what_is_encoded_is_decoded(columns: list[Any]) -> None:
    values = tuple(value for _, value in columns)
    assert decode_row(encode_row(values, types(columns)), types(columns)) == values


def test_the_bytes_are_those_of_pypaimon_rust() -> None:
    row = b"\0\0\0\2" + bytes(8) + (7).to_bytes(8, "little") + b"a\0\0\0\0\0\0\x81"
    kinds = [AtomicType(root="BIGINT"), AtomicType(root="STRING")]
    assert decode_row(row, kinds) == (7, b"a")
    assert encode_row((7, b"a"), kinds) == row


def test_bounds_are_the_least_and_the_greatest_values() -> None:
    kinds = [AtomicType(root="INT"), AtomicType(root="STRING")]
    least, greatest, nulls = bounds([(3, b"b"), (None, b"aaaaaaaaaa"), (-1, None)], kinds)
    assert decode_row(least, kinds) == (-1, b"aaaaaaaaaa")
    assert decode_row(greatest, kinds) == (3, b"b")
    assert nulls == [1, 1]


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    with contextlib.suppress(sb.FormatError):
        decode_row(data, [AtomicType(root="STRING"), AtomicType(root="DECIMAL", length=30)])


def test_texts_of_folders() -> None:
    assert text_of(19723, AtomicType(root="DATE"), legacy=True) == "19723"
    assert text_of(19723, AtomicType(root="DATE"), legacy=False) == "2024-01-01"
    assert text_of(True, AtomicType(root="BOOLEAN"), legacy=True) == "true"
    assert text_of(1e-5, AtomicType(root="DOUBLE"), legacy=True) == "1.0E-5"
    assert text_of(0.5, AtomicType(root="FLOAT"), legacy=False) == "0.5"
    with pytest.raises(sb.UnsupportedFeatureError, match="of type BINARY"):
        text_of(1.5, AtomicType(root="BINARY"), legacy=True)
