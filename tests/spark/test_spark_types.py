"""Types as Spark has them, without a session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import UnsupportedFeatureError

st = pytest.importorskip("pyspark.sql.types", reason="needs the extra spark")

from secure_bloom.spark.spark_schema import (  # noqa: E402
    arrow_schema,
    check_carried,
    common_type,
    merged_type,
)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.int32(), "int"),
        (pa.int64(), "bigint"),
        (pa.string(), "string"),
        (pa.float64(), "double"),
        (pa.decimal128(9, 2), "decimal(9,2)"),
        (pa.list_(pa.int32()), "array<int>"),
    ],
)
def test_a_joined_type(stored: pa.DataType, wanted: str) -> None:
    assert merged_type(stored).simpleString() == wanted


def test_rows_go_to_spark_in_arrow_types_of_the_same_columns() -> None:
    schema = st.StructType(
        [st.StructField("id", st.LongType()), st.StructField("t", st.StringType())]
    )
    assert arrow_schema(schema).names == ["id", "t"]
    assert arrow_schema(schema).field("id").type == pa.int64()
    check_carried(schema)


def test_a_type_that_no_python_source_carries_is_named() -> None:
    schema = st.StructType([st.StructField("gap", st.CalendarIntervalType())])
    with pytest.raises(UnsupportedFeatureError, match="gap"):
        check_carried(schema)


def test_types_that_files_have_for_one_stored_type() -> None:
    hours, days = st.DayTimeIntervalType(1, 1), st.DayTimeIntervalType(0, 0)
    assert common_type([hours, days, hours]) == st.DayTimeIntervalType(0, 1)
    assert common_type([st.LongType(), st.LongType()]) == st.LongType()
    for other in (st.LongType(), st.YearMonthIntervalType(0, 0)):
        with pytest.raises(UnsupportedFeatureError, match="does not unite"):
            common_type([hours, other])
    with pytest.raises(UnsupportedFeatureError, match="timestamp, others timestamp_ntz"):
        common_type([st.TimestampType(), st.TimestampNTZType()])
