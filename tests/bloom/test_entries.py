"""What of a value goes into a filter: all that readers look for, and what they compare as equal."""

from __future__ import annotations

import struct
from typing import Any

import duckdb
import numpy as np
import pytest

from secure_bloom.bloom.entries import count_missed, forms, insert_entries
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ConvertedType, FieldRepetitionType, Type
from secure_bloom.parquet.value_arrays import Binary, EncodedValues
from testing.thrift.metadata import SchemaElement


def leaf(type_: Type, **fields: Any) -> Leaf:
    element = SchemaElement.of(name="x", type=type_, **fields)
    required = FieldRepetitionType.REQUIRED
    return Leaf(path=("x",), element=element, type=type_, repetitions=(required,))


def filtered(column: Leaf, values: Any) -> SplitBlockBloomFilter:
    bloom_filter = SplitBlockBloomFilter(64)
    insert_entries(bloom_filter, column, values)
    return bloom_filter


DOUBLE = leaf(Type.DOUBLE)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_either_zero_stands_for_both(zero: float) -> None:
    found = filtered(DOUBLE, np.array([zero, 1.0]))
    assert all(found.check(struct.pack("<d", n)) for n in (0.0, -0.0, 1.0))
    assert not filtered(DOUBLE, np.array([1.0])).check(struct.pack("<d", 0.0))


def test_a_nan_is_found_by_its_own_bits_and_by_those_that_spark_asks_for() -> None:
    own = struct.pack("<Q", 0x7FF8_0000_DEAD_BEEF)
    found = filtered(DOUBLE, np.frombuffer(own, np.float64))
    for bits in (0x7FF8_0000_DEAD_BEEF, 0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0000):
        assert found.check(struct.pack("<Q", bits))


def test_a_decimal_of_bytes_is_found_in_its_shortest_form_too() -> None:
    column = leaf(Type.BYTE_ARRAY, converted_type=ConvertedType.DECIMAL, precision=18, scale=2)
    assert forms(column) == 2
    stored = [b"\x00\x00\x05", b"\xff\xff\x80", b"\x00\x80"]
    ends = np.cumsum([0, *map(len, stored)])
    values = Binary(offsets=ends, data=np.frombuffer(b"".join(stored), np.uint8))
    found = filtered(column, values)
    assert all(map(found.check, [*stored, b"\x05", b"\x80"]))
    assert count_missed(found, values) == 0


@pytest.mark.parametrize("width", [2, 9, 15, 16, 17, 20])
def test_a_decimal_of_one_width_is_found_as_sixteen_bytes_too(width: int) -> None:
    column = leaf(
        Type.FIXED_LEN_BYTE_ARRAY,
        converted_type=ConvertedType.DECIMAL,
        type_length=width,
        precision=4,
        scale=2,
    )
    assert forms(column) == (1 if width == 16 else 2)
    numbers = [-5, 7, 0, 999, -999]
    stored = b"".join(number.to_bytes(width, "big", signed=True) for number in numbers)
    values = np.frombuffer(stored, f"V{width}")
    for entries in (
        values,
        EncodedValues(content=np.frombuffer(stored, np.uint8), count=len(numbers), width=width),
    ):
        found = filtered(column, entries)
        for size in (width, 16):
            assert all(found.check(number.to_bytes(size, "big", signed=True)) for number in numbers)
    assert count_missed(filtered(column, values), values) == 0


SHOWN = {
    b"": "",
    b"plain": "plain",
    b"\x00\xabz": r"\x00\xABz",
    b"it's": r"it\x27s",
    b'a"\\': r"a\x22\x5C",
    bytes([31, 32, 126, 127]): r"\x1F ~\x7F",
}


@pytest.mark.parametrize("prefix", [0, 4])
@pytest.mark.parametrize("piece", [1, 4, 1 << 18])
def test_bytes_are_found_as_the_text_that_duckdb_shows_too(
    monkeypatch: pytest.MonkeyPatch, prefix: int, piece: int
) -> None:
    monkeypatch.setattr("secure_bloom.bloom.entries._PIECE", piece)
    column = leaf(Type.BYTE_ARRAY)
    assert forms(column) == 2
    stored = [len(value).to_bytes(4, "little")[:prefix] + value for value in SHOWN]
    values = Binary(
        offsets=np.cumsum([0, *map(len, stored)]),
        data=np.frombuffer(b"".join(stored), np.uint8),
        prefix=prefix,
    )
    found = filtered(column, values)
    for value, shown in SHOWN.items():
        assert found.check(value)
        assert found.check(shown.encode())
    assert duckdb.execute(
        "SELECT list(x::VARCHAR) FROM (SELECT unnest(?) x)", [list(SHOWN)]
    ).fetchall() == [(list(SHOWN.values()),)]


def test_only_bytes_that_duckdb_shows_in_another_way_are_inserted_twice() -> None:
    values = [b"plain", b"", *(bytes([byte, 97]) for byte in range(256))]
    lengths = [len(value) for value in values]
    stored = Binary(
        offsets=np.cumsum([0, *lengths]), data=np.frombuffer(b"".join(values), np.uint8)
    )
    inserted: list[int] = []

    class Counted(SplitBlockBloomFilter):
        def insert_binary(self, offsets: Any, data: Any, *, prefix: int = 0) -> None:
            inserted.append(len(offsets) - 1)
            super().insert_binary(offsets, data, prefix=prefix)

    found, wanted = Counted(64), SplitBlockBloomFilter(64)
    insert_entries(found, leaf(Type.BYTE_ARRAY), stored)
    shown = [text for (text,) in duckdb.execute("SELECT unnest(?)::VARCHAR", [values]).fetchall()]
    for form in (*values, *(text.encode() for text in shown)):
        wanted.insert(form)
    assert found.to_bytes() == wanted.to_bytes()
    others = [text.encode() for text in shown if text.encode() not in values]
    assert inserted == [len(values), len(others)]


def test_bytes_of_one_width_are_found_as_text_too() -> None:
    column = leaf(Type.FIXED_LEN_BYTE_ARRAY, type_length=2)
    found = filtered(column, np.frombuffer(b"a\x00\xffb", "V2"))
    assert all(map(found.check, [b"a\x00", b"\xffb", rb"a\x00", rb"\xFFb"]))
    assert forms(leaf(Type.BYTE_ARRAY, converted_type=ConvertedType.UTF8)) == 1


def test_values_that_a_filter_lacks_are_counted() -> None:
    found = filtered(DOUBLE, np.arange(1.0, 11.0))
    assert count_missed(found, np.arange(1.0, 11.0)) == 0
    assert count_missed(SplitBlockBloomFilter(1), np.arange(1.0, 11.0)) == 10
    only_one = SplitBlockBloomFilter(64)
    only_one.insert(struct.pack("<d", 0.0))
    assert count_missed(only_one, np.array([0.0])) == 1
    assert count_missed(only_one, np.array([0.0]), both_zeros=False) == 0
    assert count_missed(only_one, np.array([np.nan])) == 0  # others need not have NaN
