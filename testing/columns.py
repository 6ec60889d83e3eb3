"""The types of the format: how each is written, which values it holds, and how people write them.

The n-th values of a type are all different for n below ``distinct``: even ones go into files, odd
ones are absent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from secure_bloom.parquet.structures.metadata import ConvertedType, Type
from testing.thrift.metadata import SchemaElement

PLAIN, DICTIONARY = "PLAIN", "dictionary"
_ENCODINGS = {
    Type.INT32: (PLAIN, DICTIONARY, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    Type.INT64: (PLAIN, DICTIONARY, "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    Type.INT96: (PLAIN, DICTIONARY),
    Type.FLOAT: (PLAIN, DICTIONARY, "BYTE_STREAM_SPLIT"),
    Type.DOUBLE: (PLAIN, DICTIONARY, "BYTE_STREAM_SPLIT"),
    Type.BYTE_ARRAY: (PLAIN, DICTIONARY, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"),
    Type.FIXED_LEN_BYTE_ARRAY: (PLAIN, DICTIONARY, "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One type of column ``x``.

    ``written`` is the n-th value as a person writes it, ``stored`` what pyarrow makes it from;
    ``sql`` is its type in DuckDB.  ``leaf``, ``row`` and ``lookup`` are for nested columns: the
    dotted path of the values, the row around one value, and DuckDB's condition on it.  ``declare``
    gives the schema element a type that pyarrow cannot write.
    """

    physical: Type
    logical: str
    arrow: pa.DataType
    written: Callable[[int], str]
    stored: Callable[[int], Any]
    sql: str
    distinct: int = 1 << 20
    options: Mapping[str, Any] = field(default_factory=dict)
    leaf: str = "x"
    row: Callable[[Any], Any] | None = None
    lookup: str = "x = {}"
    declare: Callable[[SchemaElement], None] | None = None

    @property
    def name(self) -> str:
        """How the page on compatibility calls the type."""
        return f"{self.physical.name} {self.logical}".rstrip()

    @property
    def encodings(self) -> tuple[str, ...]:
        """All that pyarrow writes for the physical type."""
        return _ENCODINGS[self.physical]

    def values(self, start: int, count: int, *, absent: bool = False) -> list[int]:
        """The numbers of ``count`` present or absent values, round and round from ``start``."""
        return [2 * n % self.distinct + absent for n in range(start, start + count)]

    def array(self, numbers: list[int | None]) -> pa.Array:
        """The rows with these values, None for a null row."""
        wrap = self.row or (lambda value: value)
        return pa.array([None if n is None else wrap(self.stored(n)) for n in numbers], self.arrow)

    def literal(self, number: int) -> str:
        """The value in DuckDB's SQL."""
        text = self.written(number)
        if self.sql == "BLOB":
            raw = bytes.fromhex(text.removeprefix("hex:"))
            text = "".join(f"\\x{byte:02x}" for byte in raw)
        return f"'{text}'::{self.sql}"


def _integer(physical: Type, bits: int, *, signed: bool, sql: str, logical: str = "") -> Column:
    distinct = min(1 << bits, 1 << 20)
    # Both ends of the range, so that signs and high bits matter.
    half = 1 << (bits - 1)
    start = -distinct // 2 if signed else (half - distinct // 2)
    return Column(
        physical=physical,
        logical=logical or f"{'' if signed else 'unsigned '}{bits} bits",
        arrow=getattr(pa, f"{'' if signed else 'u'}int{bits}")(),
        written=lambda n: str(start + n),
        stored=lambda n: start + n,
        sql=sql,
        distinct=distinct,
    )


def _float(physical: Type, logical: str, arrow: pa.DataType, form: str, sql: str) -> Column:
    def stored(n: int) -> float:
        # Exact in the type's own width; sixteenths fit 16 bits, sevenths use all the others have.
        value = n / 16 if form == "e" else (n - 999) / 7
        return float(struct.unpack(form, struct.pack(form, value))[0])

    return Column(
        physical=physical,
        logical=logical,
        arrow=arrow,
        written=lambda n: repr(stored(n)),
        stored=stored,
        sql=sql,
        distinct=2048 if form == "e" else 1 << 20,
    )


def _decimal(physical: Type, digits: int, **more: Any) -> Column:
    def written(n: int) -> str:
        return f"{Decimal(n - 1000) / 100:.2f}"

    return Column(
        **{
            "physical": physical,
            "logical": f"decimal({digits}, 2)",
            "arrow": pa.decimal128(digits, 2),
            "written": written,
            "stored": lambda n: Decimal(written(n)),
            "sql": f"DECIMAL({digits}, 2)",
            **more,
        }
    )


def _decimal_of_bytes(digits: int, width: int | None = None) -> Column:
    """In the fewest bytes, or padded to ``width``: pyarrow writes no BYTE_ARRAY decimals itself."""

    def stored(n: int) -> bytes:
        number = n - 1000
        fewest = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(width or fewest, "big", signed=True)

    def declare(element: SchemaElement) -> None:
        element.converted_type = ConvertedType.DECIMAL
        element.precision = digits
        element.scale = 2

    padded = f" padded to {width} bytes" if width else ""
    return _decimal(
        Type.BYTE_ARRAY,
        digits,
        logical=f"decimal({digits}, 2){padded}",
        arrow=pa.binary(),
        stored=stored,
        declare=declare,
    )


def _declared(converted_type: ConvertedType) -> Callable[[SchemaElement], None]:
    def declare(element: SchemaElement) -> None:
        element.converted_type = converted_type
        del element.logicalType

    return declare


def _bytes(logical: str, arrow: pa.DataType, physical: Type, **more: Any) -> Column:
    def stored(n: int) -> bytes:
        return (n * 2654435761 % 2**40).to_bytes(5, "big")

    def written(n: int) -> str:
        return f"hex:{stored(n).hex()}"

    return Column(
        physical=physical,
        logical=logical,
        arrow=arrow,
        written=written,
        stored=stored,
        sql="BLOB",
        **more,
    )


def _text(logical: str, arrow: pa.DataType, form: str, sql: str, **more: Any) -> Column:
    return Column(
        physical=Type.BYTE_ARRAY,
        logical=logical,
        arrow=arrow,
        written=form.format,
        stored=form.format,
        sql=sql,
        **more,
    )


#: Of a second, with the digits that text has for them.
_UNITS = {"ms": (1_000, 3), "us": (1_000_000, 6), "ns": (1_000_000_000, 9)}


def _clock(units: int, unit: str) -> str:
    per_second, digits = _UNITS[unit]
    seconds, fraction = divmod(units, per_second)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{fraction:0{digits}}"


def _time(physical: Type, arrow: pa.DataType, unit: str, sql: str, *, utc: bool = False) -> Column:
    step = _UNITS[unit][0] // 1000 + (unit != "ms")
    return Column(
        physical=physical,
        logical=f"time {unit}{' UTC' if utc else ''}",
        arrow=arrow,
        written=lambda n: _clock(n * step, unit),
        stored=lambda n: n * step,
        sql=sql,
        options={"write_time_adjusted_to_utc": utc},
    )


def _timestamp(unit: str, sql: str, *, utc: bool = False) -> Column:
    # Steps of a second and a bit, from before the epoch.
    per_second = _UNITS[unit][0]
    first, step = -1000 * per_second, per_second + 1

    def written(n: int) -> str:
        days, units = divmod(first + n * step, 86_400 * per_second)
        day = date(1970, 1, 1) + timedelta(days=days)
        return f"{day}T{_clock(units, unit)}{'Z' if utc else ''}"

    return Column(
        physical=Type.INT64,
        logical=f"timestamp {unit}{' UTC' if utc else ''}",
        arrow=pa.timestamp(unit, "UTC" if utc else None),
        written=written,
        stored=lambda n: first + n * step,
        sql=sql,
    )


def _int96() -> Column:
    like = _timestamp("us", "TIMESTAMP")
    return Column(
        physical=Type.INT96,
        logical="timestamp",
        arrow=pa.timestamp("us"),
        written=like.written,
        stored=like.stored,
        sql="TIMESTAMP",
        options={"use_deprecated_int96_timestamps": True},
    )


def _date() -> Column:
    return Column(
        physical=Type.INT32,
        logical="date",
        arrow=pa.date32(),
        written=lambda n: str(date(1970, 1, 1) + timedelta(days=n - 1000)),
        stored=lambda n: n - 1000,
        sql="DATE",
    )


def _uuid() -> Column:
    def value(n: int) -> UUID:
        return UUID(int=n << 64 | n * 2654435761)

    return Column(
        physical=Type.FIXED_LEN_BYTE_ARRAY,
        logical="UUID",
        arrow=pa.uuid(),
        written=lambda n: str(value(n)),
        stored=lambda n: value(n).bytes,
        sql="UUID",
    )


def _nested() -> list[Column]:
    def of_integers(logical: str, arrow: pa.DataType, leaf: str, lookup: str, row: Any) -> Column:
        return Column(
            physical=Type.INT64,
            logical=logical,
            arrow=arrow,
            written=str,
            stored=lambda n: n,
            sql="BIGINT",
            leaf=leaf,
            lookup=lookup,
            row=row,
        )

    integer = pa.int64()
    struct_of_lists = pa.struct({"a": pa.list_(pa.struct({"b": integer}))})
    return [
        of_integers(
            "in a list",
            pa.list_(integer),
            "x.list.element",
            "list_contains(x, {})",
            lambda v: [v, None, v],
        ),
        of_integers(
            "in a struct", pa.struct({"a": integer}), "x.a", "x.a = {}", lambda v: {"a": v}
        ),
        of_integers(
            "in a map's values",
            pa.map_(pa.string(), integer),
            "x.key_value.value",
            "list_contains(map_values(x), {})",
            lambda v: [("k", v), ("l", None)],
        ),
        of_integers(
            "in a struct, list and struct",
            struct_of_lists,
            "x.a.list.element.b",
            "list_contains(list_transform(x.a, lambda y: y.b), {})",
            lambda v: {"a": [{"b": v}, None]},
        ),
        _text(
            "in a map's keys",
            pa.map_(pa.string(), integer),
            "k{}",
            "VARCHAR",
            leaf="x.key_value.key",
            lookup="map_contains(x, {})",
            row=lambda v: [(v, 1)],
        ),
    ]


_AS_INTEGER = {"store_decimal_as_integer": True}

COLUMNS = [
    _integer(Type.INT32, 8, signed=True, sql="TINYINT"),
    _integer(Type.INT32, 16, signed=True, sql="SMALLINT"),
    _integer(Type.INT32, 32, signed=True, sql="INTEGER"),
    _integer(Type.INT32, 8, signed=False, sql="UTINYINT"),
    _integer(Type.INT32, 16, signed=False, sql="USMALLINT"),
    _integer(Type.INT32, 32, signed=False, sql="UINTEGER"),
    _decimal(Type.INT32, 9, options=_AS_INTEGER),
    _date(),
    _time(Type.INT32, pa.time32("ms"), "ms", "TIME"),
    _integer(Type.INT64, 64, signed=True, sql="BIGINT"),
    _integer(Type.INT64, 64, signed=False, sql="UBIGINT"),
    _decimal(Type.INT64, 18, options=_AS_INTEGER),
    _time(Type.INT64, pa.time64("us"), "us", "TIME"),
    _time(Type.INT64, pa.time64("us"), "us", "TIMETZ", utc=True),
    _time(Type.INT64, pa.time64("ns"), "ns", "TIME_NS"),
    _timestamp("ms", "TIMESTAMP"),
    _timestamp("us", "TIMESTAMP"),
    _timestamp("ns", "TIMESTAMP_NS"),
    _timestamp("ms", "TIMESTAMPTZ", utc=True),
    _timestamp("us", "TIMESTAMPTZ", utc=True),
    _timestamp("ns", "TIMESTAMPTZ_NS", utc=True),
    _int96(),
    _float(Type.FLOAT, "", pa.float32(), "f", "FLOAT"),
    _float(Type.DOUBLE, "", pa.float64(), "d", "DOUBLE"),
    _float(Type.FIXED_LEN_BYTE_ARRAY, "FLOAT16", pa.float16(), "e", "FLOAT"),
    _bytes("", pa.binary(5), Type.FIXED_LEN_BYTE_ARRAY),
    _uuid(),
    *(_decimal(Type.FIXED_LEN_BYTE_ARRAY, digits) for digits in (9, 18, 38)),
    _bytes("", pa.binary(), Type.BYTE_ARRAY),
    _bytes("BSON", pa.binary(), Type.BYTE_ARRAY, declare=_declared(ConvertedType.BSON)),
    _text("string", pa.string(), "value {} é", "VARCHAR"),
    _text("ENUM", pa.string(), "E{}", "VARCHAR", declare=_declared(ConvertedType.ENUM)),
    _text("JSON", pa.json_(), '{{"a": {}}}', "JSON"),
    _decimal_of_bytes(9),
    _decimal_of_bytes(30),
    _decimal_of_bytes(30, width=16),
    *_nested(),
]
#: Every type with every encoding that pyarrow has for it.
CASES = [(column, encoding) for column in COLUMNS for encoding in column.encodings]
CASE_IDS = [f"{column.name}-{encoding}".replace(" ", "_") for column, encoding in CASES]


def _marks(column: Column, encoding: str) -> list[pytest.MarkDecorator]:
    """Each type in every other encoding, and each encoding with every other type, in every run."""
    turn = COLUMNS.index(column) + column.encodings.index(encoding)
    return [pytest.mark.slow] if turn % 2 else []


#: All cases for readers that stand beside pyarrow, which sees all of them in every run.
CASES_IN_TURNS = [
    pytest.param(*case, id=case_id, marks=_marks(*case))
    for case, case_id in zip(CASES, CASE_IDS, strict=True)
]
