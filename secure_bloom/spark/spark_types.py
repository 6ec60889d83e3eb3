"""The types of columns as Spark's own reader gives them, from Parquet leaves and Arrow types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as st
from pyspark.sql.pandas.types import from_arrow_type

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.logical_types import Kind, Logical, describe
from secure_bloom.parquet.schema import Leaf
from secure_bloom.spark.compat import arrow_schema_in_utc

_MILLIS, _MICROS = 1_000_000, 1_000

_INTERVAL_TYPES = (st.DayTimeIntervalType, st.YearMonthIntervalType)
_LEAVE_OUT = 'leave the column out: .option("columns", "the others, ...")'


def merged_type(stored: pa.DataType) -> st.DataType:
    """Return Spark's type for ``stored``, the common type of files with different types."""
    try:
        found = from_arrow_type(stored, prefer_timestamp_ntz=True)
        # Only the way back finds a decimal with more digits than Spark has.
        arrow_schema(st.StructType([st.StructField("", found)]))
    except (PySparkException, ValueError):
        raise UnsupportedFeatureError(
            f"the files' types unite to {stored}, a type that Spark does not have", hint=_LEAVE_OUT
        ) from None
    return found


def common_type(types: Sequence[st.DataType]) -> st.DataType:
    """Return the one Spark type of a column that has ``types`` in several files.

    All files store the column in one Arrow type. Raises UnsupportedFeatureError for types that
    Spark does not unite: INT96 is an instant, and a timestamp without a zone is none.
    """
    first, *others = dict.fromkeys(types)
    for other in others:
        if not (isinstance(first, _INTERVAL_TYPES) and type(first) is type(other)):
            raise UnsupportedFeatureError(
                f"some files have {first.simpleString()}, others {other.simpleString()}, which "
                "Spark does not unite",
                hint=_LEAVE_OUT,
            )
        first = type(first)(
            min(first.startField, other.startField), max(first.endField, other.endField)
        )
    return first


def spark_type(stored: pa.DataType, leaves: Iterator[Leaf]) -> st.DataType:
    """Return the type of a column whose leaves are next in ``leaves``."""
    if isinstance(stored, pa.BaseExtensionType) and pa.types.is_nested(stored.storage_type):
        return spark_type(stored.storage_type, leaves)
    if pa.types.is_map(stored):
        key = spark_type(stored.key_type, leaves)
        return st.MapType(key, spark_type(stored.item_type, leaves))
    if pa.types.is_struct(stored):
        return st.StructType([st.StructField(f.name, spark_type(f.type, leaves)) for f in stored])
    if pa.types.is_nested(stored):
        return st.ArrayType(spark_type(stored.value_type, leaves))
    leaf = next(leaves)
    logical = leaf.logical
    found = _TYPES[logical.kind](leaf, logical)
    if found is None:
        raise UnsupportedFeatureError(
            f"Spark has no type for {describe(leaf.element)}", hint=_LEAVE_OUT
        )
    return found


_INTEGERS: dict[tuple[int, bool], st.DataType] = {
    (8, True): st.ByteType(),
    (16, True): st.ShortType(),
    (32, True): st.IntegerType(),
    (64, True): st.LongType(),
    (8, False): st.ShortType(),
    (16, False): st.IntegerType(),
    (32, False): st.LongType(),
    (64, False): st.DecimalType(20, 0),
}


def _float(leaf: Leaf, _: Logical) -> st.DataType:
    return st.FloatType() if leaf.width == 4 else st.DoubleType()


def _decimal(leaf: Leaf, logical: Logical) -> st.DataType | None:
    digits = leaf.decimal_digits
    if digits is None:
        raise FormatError(f"DECIMAL column {leaf.name} has no precision")
    most = 38
    return st.DecimalType(digits, logical.scale) if digits <= most else None


def _time(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.is_utc or logical.unit == _MILLIS:
        return None
    return st.TimeType(6 if logical.unit == _MICROS else 9)


def _timestamp(_: Leaf, logical: Logical) -> st.DataType | None:
    if logical.unit not in (_MILLIS, _MICROS):
        return None
    return st.TimestampType() if logical.is_utc else st.TimestampNTZType()


_TYPES: dict[Kind, Callable[[Leaf, Logical], st.DataType | None]] = {
    Kind.TEXT: lambda _leaf, _logical: st.StringType(),
    Kind.BYTES: lambda _leaf, _logical: st.BinaryType(),
    Kind.INTEGER: lambda _leaf, logical: _INTEGERS.get((logical.bits, logical.signed)),
    Kind.FLOAT: _float,
    Kind.FLOAT16: lambda _leaf, _logical: None,
    Kind.DECIMAL: _decimal,
    Kind.DATE: lambda _leaf, _logical: st.DateType(),
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp,
    Kind.INT96: lambda _leaf, _logical: st.TimestampType(),
    Kind.UUID: lambda _leaf, _logical: None,
    Kind.BOOLEAN: lambda _leaf, _logical: st.BooleanType(),
}


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark wants for rows of ``schema``."""
    return arrow_schema_in_utc(schema)


def check_carried(schema: st.StructType) -> None:
    """Raise UnsupportedFeatureError for a column that a Python data source cannot return."""
    for field in schema:
        try:
            arrow_schema(st.StructType([field]))
        except PySparkException:
            raise UnsupportedFeatureError(
                f"Spark takes no {field.dataType.simpleString()} from a Python data source",
                hint=_LEAVE_OUT,
                column=field.name,
            ) from None
