"""Arrays of values that were taken out of pages: which types are made here, and nulls in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secure_bloom.parquet.page_values import Taken
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.value_arrays import Binary
from secure_bloom.reading.rows.taken_arrays import array_maker, united
from testing.surgery import opened
from testing.tables import write


def leaf_of(folder: Path, type_: pa.DataType) -> Leaf:
    path = write(folder / "x.parquet", pa.table({"a": pa.nulls(3, type_)}))
    with opened(path) as it:
        return it.chunk(0, "a").leaf


def test_nulls_are_where_no_value_is(tmp_path: Path) -> None:
    make = array_maker(leaf_of(tmp_path, pa.string()), pa.string())
    assert make is not None
    texts = Binary(offsets=np.array([0, 2, 3]), data=np.frombuffer(b"abc", np.uint8))
    mask = np.array([True, False, True])
    assert make(Taken(entries=texts, is_valid=mask)).to_pylist() == ["ab", None, "c"]
    assert make(Taken(entries=texts, is_valid=None)).to_pylist() == ["ab", "c"]


def test_numbers_of_32_bits_are_cut_as_pyarrow_does(tmp_path: Path) -> None:
    make = array_maker(leaf_of(tmp_path, pa.int8()), pa.int8())
    assert make is not None
    numbers = np.array([-1, 300], np.int32)
    assert make(Taken(entries=numbers, is_valid=None)).to_pylist() == [-1, 44]


@pytest.mark.parametrize("type_", [pa.string_view(), pa.decimal256(50), pa.duration("s")])
def test_other_types_are_left_to_pyarrow(tmp_path: Path, type_: pa.DataType) -> None:
    assert array_maker(leaf_of(tmp_path, type_), type_) is None


def test_a_type_of_other_bytes_is_left_to_pyarrow(tmp_path: Path) -> None:
    leaf = leaf_of(tmp_path, pa.int32())
    for type_ in (pa.int64(), pa.string(), pa.bool_(), pa.timestamp("us"), pa.binary(4)):
        assert array_maker(leaf, type_) is None


@pytest.mark.parametrize(
    ("of", "first", "second"),
    [
        (pa.struct({"a": pa.int64(), "b": pa.int64()}), [{"a": 1}, None], [{"b": 1}, {"b": 2}]),
        (
            pa.map_(pa.int64(), pa.int64()),
            [[{"key": 1}], [{"key": 2}]],
            [[{"value": 1}, {"value": 2}], []],
        ),
        (
            pa.large_list(pa.struct({"a": pa.int64(), "b": pa.int64()})),
            [[{"a": 1}], []],
            [[{"b": 1}], None],
        ),
        (
            pa.list_(pa.struct({"a": pa.int64(), "b": pa.int64()})),
            [[{"a": 1}, None]],
            [[None, {"b": 1}]],
        ),
    ],
)
def test_leaves_that_contradict_each_other_make_no_column(
    of: pa.DataType, first: list[Any], second: list[Any]
) -> None:
    assert united(pa.field("x", of), [pa.array(first), pa.array(second)]) is None
