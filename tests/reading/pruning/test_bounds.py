"""Bounds that bound nothing are not believed."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.parquet.value_order import OrderKey, order_of
from secure_bloom.reading.pruning.bounds import Bounds, has_signed_order, keys_of
from tests.surgery import opened


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


@pytest.fixture
def order(tmp_path: Path) -> OrderKey | None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        return order_of(it.footer.leaves[0])


def test_bounds_in_their_order_are_believed(order: OrderKey | None) -> None:
    low, high = keys_of(order, _double(1.0), _double(2.0))
    assert low <= high
    assert low is not None


@pytest.mark.parametrize(
    ("low", "high"), [(2.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (None, 1.0), (1.0, None)]
)
def test_bounds_that_contradict_themselves_are_not(
    order: OrderKey | None, low: float | None, high: float | None
) -> None:
    stored = [None if bound is None else _double(bound) for bound in (low, high)]
    assert keys_of(order, *stored) == (None, None)


def test_without_an_order_nothing_is_bounded() -> None:
    assert keys_of(None, b"a", b"b") == (None, None)


@pytest.mark.parametrize(
    ("nulls", "values", "are_all"), [(3, 3, True), (2, 3, False), (None, 3, False)]
)
def test_all_are_null_where_the_counts_say_so(
    nulls: int | None, values: int, are_all: bool
) -> None:
    assert Bounds(nulls=nulls, values=values).is_all_null is are_all


@pytest.mark.parametrize(
    ("stored", "is_signed"), [(pa.int32(), True), (pa.uint32(), False), (pa.string(), False)]
)
def test_older_bounds_are_right_for_signed_types_alone(
    tmp_path: Path, stored: pa.DataType, is_signed: bool
) -> None:
    pq.write_table(pa.table({"x": pa.array([], stored)}), tmp_path / "x.parquet")
    with opened(tmp_path / "x.parquet") as it:
        assert has_signed_order(it.footer.leaves[0]) is is_signed
