"""Types as Spark has them, without a session."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import UnsupportedFeatureError

st = pytest.importorskip("pyspark.sql.types", reason="needs the extra spark")

from secure_bloom.spark.spark_types import arrow_schema, check_carried, merged_type  # noqa: E402


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
