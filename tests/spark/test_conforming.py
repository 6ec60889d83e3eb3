"""Which types of the files are read as which types of a schema that the caller gives."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.spark.conforming import conformed

_AT = datetime(2024, 3, 1, 10, 30)
_INSTANT, _LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def read_as(stored: pa.Array, wanted: pa.DataType) -> Any:
    """The one value of a column, as Spark gets it."""
    batch = pa.record_batch({"x": stored})
    found = conformed(batch, pa.schema({"x": wanted}), {}, {}, "f.parquet")
    return found.column(0).to_pylist()[0]


@pytest.mark.parametrize(
    ("stored", "wanted", "value"),
    [
        (pa.array([7], pa.int8()), pa.int64(), 7),
        (pa.array([7], pa.int32()), pa.int8(), 7),
        (pa.array([7], pa.int32()), pa.float64(), 7.0),
        (pa.array([2**32 - 1], pa.uint32()), pa.int64(), 2**32 - 1),
        (pa.array([2**64 - 1], pa.uint64()), pa.decimal128(20, 0), Decimal(2**64 - 1)),
        (pa.array([7], pa.int32()), pa.decimal128(12, 2), Decimal(7)),
        (pa.array([0.1], pa.float32()), pa.float64(), 0.10000000149011612),
        (pa.array([Decimal("1.50")]), pa.decimal128(12, 4), Decimal("1.5")),
        (pa.array(["é"]), pa.binary(), "é".encode()),
        (pa.array(["é".encode()]), pa.string(), "é"),
        (pa.array(["é"]).dictionary_encode(), pa.string(), "é"),
        (pa.array([b"ab"], pa.binary(2)), pa.binary(), b"ab"),
        (pa.array([date(2024, 3, 1)]), _LOCAL, datetime(2024, 3, 1)),
        (pa.array([_AT], _LOCAL), _INSTANT, pa.scalar(_AT, _INSTANT).as_py()),
        (pa.array([_AT], pa.timestamp("ms", "UTC")), _LOCAL, _AT),
        (pa.array([5], _INSTANT), pa.int64(), 5),
        (pa.array([5]), pa.duration("us"), timedelta(microseconds=5)),
        (pa.nulls(1), pa.date32(), None),
        (pa.array([[1]], pa.list_(pa.int32())), pa.list_(pa.int64()), [1]),
        (pa.array([{"a": 1}]), pa.struct({"b": pa.date32(), "a": pa.int64()}), {"b": None, "a": 1}),
    ],
    ids=str,
)
def test_a_value_stays_what_it_is(stored: pa.Array, wanted: pa.DataType, value: object) -> None:
    assert read_as(stored, wanted) == value


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([1001], pa.int32()), pa.int8()),
        (pa.array([2**64 - 1001], pa.uint64()), pa.int64()),
        (pa.array([1001], pa.timestamp("ns", "UTC")), _INSTANT),
    ],
    ids=str,
)
def test_a_value_beyond_the_type_is_an_error_and_not_another_value(
    stored: pa.Array, wanted: pa.DataType
) -> None:
    with pytest.raises(FormatError, match="column x: a value") as caught:
        read_as(stored, wanted)
    assert "1001" not in str(caught.value)


def test_a_member_in_another_case_is_not_null() -> None:
    with pytest.raises(PolicyError, match=r"column x\.A: its name in the files is a"):
        read_as(pa.array([{"a": 1}]), pa.struct({"A": pa.int64()}))
