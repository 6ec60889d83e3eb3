"""What a person writes becomes the bytes that pyarrow writes for it."""

from __future__ import annotations

import io
import struct
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.literals import physical_values, python_value
from secure_bloom.parquet.schema import Leaf, leaves
from testing.thrift import trees
from testing.thrift.metadata import FileMetaData


def _file(array: pa.Array, **options: object) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"x": array})
    pq.write_table(
        table, sink, use_dictionary=False, compression="none", store_schema=False, **options
    )
    return sink.getvalue()


def _leaf(content: bytes) -> Leaf:
    length = int.from_bytes(content[-8:-4], "little")
    return leaves(FileMetaData(trees.decode(content[-8 - length : -8])[0]).schema)[0]


CASES = [
    (pa.array(["é"]), ["é"]),
    (pa.array([b"\x00\xff"]), [b"\x00\xff", "hex:00ff"]),
    (pa.array([-5], pa.int32()), [-5, "-5", -5.0]),
    (pa.array([-5], pa.int8()), [-5, "-5"]),
    (pa.array([250], pa.uint8()), [250, "250"]),
    (pa.array([2**32 - 1], pa.uint32()), [2**32 - 1, str(2**32 - 1)]),
    (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
    (pa.array([-(2**63)], pa.int64()), [-(2**63)]),
    (pa.array([1.5], pa.float32()), [1.5, "1.5"]),
    (pa.array([0.1], pa.float64()), [0.1, "0.1", "1e-1"]),
    (pa.array([np.float16(1.5)], pa.float16()), [1.5, "1.5"]),
    (pa.array([Decimal("12.50")], pa.decimal128(9, 2)), [Decimal("12.5"), "12.50", "12.5"]),
    (pa.array([Decimal("-12.50")], pa.decimal128(38, 2)), [Decimal("-12.5"), "-12.50"]),
    (
        pa.array([Decimal("12345678901234567890123456789012345.678")], pa.decimal128(38, 3)),
        ["12345678901234567890123456789012345.678"],
    ),
    (pa.array([date(2024, 3, 1)]), [date(2024, 3, 1), "2024-03-01"]),
    (pa.array([date(1901, 3, 1)]), ["1901-03-01"]),
    (pa.array([time(10, 0, 1)], pa.time32("ms")), [time(10, 0, 1), "10:00:01"]),
    (pa.array([time(10, 0, 0, 5)], pa.time64("us")), [time(10, 0, 0, 5), "10:00:00.000005"]),
    (
        pa.array([datetime(2024, 3, 1, 10, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        [
            "2024-03-01T10:00:00Z",
            "2024-03-01 10:00",
            "2024-03-01T12:00:00+02:00",
            datetime(2024, 3, 1, 10, tzinfo=UTC),
        ],
    ),
    (
        pa.array([datetime(1969, 12, 31, 23, 59, 59, 500_000)], pa.timestamp("ms")),
        ["1969-12-31T23:59:59.5", datetime(1969, 12, 31, 23, 59, 59, 500_000)],
    ),
    (pa.array([1_709_287_200_000_000_001], pa.timestamp("ns")), ["2024-03-01T10:00:00.000000001"]),
    (
        pa.array([uuid.UUID(int=7).bytes], pa.uuid()),
        [
            uuid.UUID(int=7),
            "00000000-0000-0000-0000-000000000007",
            uuid.UUID(int=7).bytes,
            "hex:" + uuid.UUID(int=7).hex,
        ],
    ),
    (pa.array([5], pa.int64()), ["5.0", "5e0", "05", np.longdouble(5), Fraction(5)]),
    (
        pa.array([Decimal("1.50"), Decimal(5)], pa.decimal128(9, 2)),
        [np.float32(1.5), Fraction(3, 2), np.int8(5), np.float16(5), Fraction(5)],
    ),
    (
        pa.array([date(2024, 3, 1)]),
        [datetime(2024, 3, 1), np.datetime64("2024-03-01"), np.datetime64("2024-03")],
    ),
    (
        pa.array([datetime(2024, 3, 1, 10)], pa.timestamp("us")),
        ["2024-03-01T10", np.datetime64("2024-03-01T10"), np.datetime64("2024-03-01T10:00", "ns")],
    ),
    (pa.array([time(10)], pa.time64("us")), ["10"]),
]


@pytest.mark.parametrize(("array", "values"), CASES, ids=lambda c: str(getattr(c, "type", "")))
def test_a_value_has_the_bytes_that_pyarrow_writes(array: pa.Array, values: list[object]) -> None:
    content = _file(array)
    leaf = _leaf(content)
    for value in values:
        (encoded,) = physical_values(leaf, python_value(value)) or ()
        assert encoded in content
        assert leaf.width in (None, len(encoded))


def test_an_int96_timestamp_has_the_bytes_that_pyarrow_writes() -> None:
    array = pa.array([datetime(2024, 3, 1, 10)], pa.timestamp("ns"))
    content = _file(array, use_deprecated_int96_timestamps=True)
    (encoded,) = physical_values(_leaf(content), "2024-03-01T10:00:00Z") or ()
    assert len(encoded) == 12
    assert encoded in content


def test_a_zero_means_both_signs() -> None:
    leaf = _leaf(_file(pa.array([1.0])))
    wanted = {struct.pack("<d", 0.0), struct.pack("<d", -0.0)}
    for zero in (0.0, -0.0, "0", 0, "-0.0"):
        assert set(physical_values(leaf, zero) or ()) == wanted


def test_nan_and_null_have_no_answer() -> None:
    leaf = _leaf(_file(pa.array([1.0])))
    assert physical_values(leaf, float("nan")) is None
    assert physical_values(leaf, "nan") is None
    assert physical_values(leaf, None) is None


@pytest.mark.parametrize(
    ("array", "value", "wanted"),
    [
        (pa.array([1], pa.int32()), "secret", "whole number that fits 32 bits"),
        (pa.array([1], pa.int32()), 2**31, "whole number that fits 32 bits"),
        (pa.array([1], pa.int32()), 1.5, "whole number"),
        (pa.array([1], pa.uint8()), -1, "whole number that fits 8 bits"),
        (pa.array([1], pa.int64()), True, "whole number"),
        (pa.array([1.5]), "secret", "a number"),
        (pa.array([1.5], pa.float32()), "1e300", "a number"),
        (pa.array([Decimal("1.50")]), "1.505", "2 digits after the point"),
        (pa.array([Decimal("1.50")]), "secret", "decimal number"),
        (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), "123456789012345.00", "decimal"),
        (pa.array([date(2024, 3, 1)]), "01.03.2024", "2024-03-01"),
        (pa.array([time(10)], pa.time32("ms")), "24:00:00", "10:00:00"),
        (pa.array([datetime(2024, 3, 1)], pa.timestamp("ms")), "2024-03-01T10:00:00.0001", "finer"),
        (pa.array([datetime(2024, 3, 1)], pa.timestamp("us")), "2024-03-01T10:00:00Z", "timestamp"),
        (pa.array([uuid.UUID(int=7).bytes], pa.uuid()), "secret", "a UUID"),
        (pa.array([b"12"], pa.binary(2)), b"123", "bytes"),
        (pa.array([b"12"]), "hex:zz", "bytes"),
        (pa.array(["a"]), 5, "text"),
    ],
)
def test_a_value_that_cannot_be_is_told_what_is_wanted(
    array: pa.Array, value: object, wanted: str
) -> None:
    with pytest.raises(PolicyError, match=wanted) as caught:
        physical_values(_leaf(_file(array)), value)
    assert "secret" not in str(caught.value)
    assert caught.value.column == "x"


@pytest.mark.parametrize("value", [pa.scalar(1), [1], np.True_, uuid.UUID(int=1)], ids=repr)
def test_what_is_no_number_is_not_absent_from_a_column_of_numbers(value: object) -> None:
    with pytest.raises(PolicyError) as caught:
        physical_values(_leaf(_file(pa.array([1]))), value)
    assert type(caught.value) is PolicyError


@pytest.mark.parametrize("of", [pa.float64(), pa.float16(), pa.decimal128(9, 2)], ids=str)
@pytest.mark.parametrize("value", [True, np.True_, b"1", np.complex64(1)], ids=repr)
def test_what_is_no_number_is_not_asked_of_fractions(of: pa.DataType, value: object) -> None:
    array = pa.array([np.float16(1) if of == pa.float16() else 1], of)
    with pytest.raises(PolicyError) as caught:
        physical_values(_leaf(_file(array)), value)
    assert type(caught.value) is PolicyError
