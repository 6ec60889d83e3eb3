"""What of a value goes into a filter: all that readers look for, and what they compare as equal."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from secure_bloom.bloom.entries import count_missed, forms, insert_entries
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ConvertedType, FieldRepetitionType, Type
from secure_bloom.parquet.value_arrays import Binary
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


def test_values_that_a_filter_lacks_are_counted() -> None:
    found = filtered(DOUBLE, np.arange(1.0, 11.0))
    assert count_missed(found, np.arange(1.0, 11.0)) == 0
    assert count_missed(SplitBlockBloomFilter(1), np.arange(1.0, 11.0)) == 10
    only_one = SplitBlockBloomFilter(64)
    only_one.insert(struct.pack("<d", 0.0))
    assert count_missed(only_one, np.array([0.0])) == 1
    assert count_missed(only_one, np.array([0.0]), both_zeros=False) == 0
    assert count_missed(only_one, np.array([np.nan])) == 0  # others need not have NaN
