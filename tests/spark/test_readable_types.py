"""Types that are read as others, and those that are refused."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.spark.conforming import check_types
from tests.spark.test_conforming import _AT, _INSTANT, read_as
from tests.spark.versions import since_4_0


@pytest.mark.parametrize(
    ("stored", "wanted", "names"),
    [
        (pa.array([date(2024, 3, 1)]), _INSTANT, r"date .* timestamp\n"),
        (pa.array([_AT], _INSTANT), pa.date32(), "timestamp .* date"),
        (pa.array([_AT], _INSTANT), pa.string(), "timestamp .* string"),
        (pa.array([0.1]), pa.float32(), "double .* float"),
        (pa.array([1]), pa.int32(), "bigint .* int"),
        (pa.array([1]), pa.float64(), "bigint .* double"),
        (pa.array([1], pa.int32()), pa.float32(), "int .* float"),
        (pa.array([1]), pa.string(), "bigint .* string"),
        (pa.array(["1"]), pa.int32(), "string .* int"),
        (pa.array(["2024-03-01"]), pa.date32(), "string .* date"),
        (pa.array([True]), pa.int32(), "boolean .* int"),
        (pa.array([1], pa.int32()), pa.bool_(), "int .* boolean"),
        (pa.array([1], pa.int32()), pa.date32(), "int .* date"),
        (pa.array([1], pa.int32()), pa.decimal128(9, 2), r"int .* decimal\(9,2\)"),
        (pa.array([Decimal("1.50")]), pa.int64(), r"decimal\(3,2\) .* bigint"),
        (pa.array([Decimal("1.50")]), pa.float64(), r"decimal\(3,2\) .* double"),
        (pa.array([Decimal("1.50")]), pa.decimal128(3, 1), r"decimal\(3,2\) .* decimal\(3,1\)"),
        (pa.array([b"ab"], pa.binary(2)), pa.string(), "binary .* string"),
        (pa.array([[1]]), pa.list_(pa.int32()), "bigint .* int"),
        (pa.array([[1]]), pa.int32(), "array<bigint> .* int"),
    ],
    ids=str,
)
@since_4_0
def test_what_would_be_another_value_is_refused(
    stored: pa.Array, wanted: pa.DataType, names: str
) -> None:
    with pytest.raises(PolicyError, match=f"column x: it is {names}") as caught:
        read_as(stored, wanted)
    assert "CAST" in str(caught.value.hint)
    with pytest.raises(PolicyError):
        check_types(pa.schema({"x": stored.type}), pa.schema({"X": wanted}), {"X": "x"})
