"""Random tables, written as random files, and random questions with pyarrow's own answers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import secure_bloom as sb
from testing.python_truths import TRUTHS
from testing.tables import KEYRING, Mode, write

_START = datetime(2024, 3, 1)
#: Few values of each type, so that questions hit, miss, and stand on bounds.
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", "b", "ab", "é", "zz" * 40]),
    "binary": (pa.binary(), [b"", b"\x00", b"\x7f", b"\x80", b"\xff\xff"]),
    "fixed": (pa.binary(3), [b"\x00\x00\x01", b"\x80\x00\x00", b"abc"]),
    "i8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "i32": (pa.int32(), [-(2**31), -1, 0, 7, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -1, 0, 8, 2**63 - 1]),
    "u32": (pa.uint32(), [0, 1, 2**31, 2**32 - 1]),
    "u64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "f16": (pa.float16(), [0.0, -0.0, 1.5, -2.0, math.nan, math.inf]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, -2.25, math.nan, math.inf]),
    "f64": (pa.float64(), [0.0, -0.0, 0.1, -1e300, math.nan, -math.inf]),
    "d9": (pa.decimal128(9, 2), [Decimal("0.00"), Decimal("-1.50"), Decimal("7777777.77")]),
    "d30": (pa.decimal128(30, 4), [Decimal("0.0000"), Decimal("-1.5"), Decimal("1e20")]),
    "date": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(2024, 3, 1)]),
    "time": (pa.time64("us"), [time(0), time(10, 0, 0, 1), time(23, 59, 59)]),
    "ts": (pa.timestamp("us"), [_START, _START + timedelta(microseconds=1), datetime(1960, 1, 1)]),
    "tz": (
        pa.timestamp("ms", "UTC"),
        [_START.replace(tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)],
    ),
    "flag": (pa.bool_(), [True, False]),
}
#: Columns whose type is another one in each file, with their values in each, and what is asked:
#: values of the types, values between two of a type, and beyond them.
EVOLVING: dict[str, tuple[dict[pa.DataType, list[Any]], list[Any]]] = {
    "ints": (
        {
            pa.int8(): [-128, -1, 0, 7, 127],
            pa.uint32(): [0, 7, 2**32 - 1],
            pa.int64(): [-(2**63), 7, 2**53 + 1],
            pa.uint64(): [0, 7, 2**64 - 1],
        },
        [7, 7.0, 7.5, -0.5, -1, 2**53 + 1, 2.0**53, 2**64, -1e300, Decimal("6.5"), math.inf],
    ),
    "floats": (
        {
            pa.float16(): [0.1, -0.0, 1.5, math.nan, math.inf],
            pa.float32(): [0.1, 0.0, 1.5, math.nan, -math.inf],
            pa.float64(): [0.1, -0.0, 1.5, math.nan, 1e300],
            pa.int16(): [0, 1, -3],
        },
        [0.1, 0.10000000149011612, 0.0999755859375, 1.5, 0, 0.7, 1e300, -1e-300, math.nan],
    ),
    "sums": (
        {
            pa.decimal128(5, 2): [Decimal("1.50"), Decimal("-7.25"), Decimal("0.00")],
            pa.decimal128(12, 4): [Decimal("1.5000"), Decimal("1.2345")],
            pa.int32(): [0, 7, -(2**31)],
        },
        [Decimal("1.5"), 1.5, 7, Decimal("1.2345"), Decimal("1.23456"), 1e20, -(2**31), 0.25],
    ),
    "at": (
        {
            pa.timestamp("s"): [_START, datetime(1960, 1, 1)],
            pa.timestamp("us"): [_START, _START + timedelta(microseconds=1)],
            pa.timestamp("ns"): [_START, _START + timedelta(milliseconds=5)],
        },
        [_START, _START + timedelta(microseconds=1), datetime(1960, 1, 1), datetime(9999, 1, 1)],
    ),
    "zoned": (
        {
            pa.timestamp("ms", "UTC"): [_START.replace(tzinfo=UTC)],
            pa.timestamp("us", "Europe/Rome"): [
                _START.replace(tzinfo=UTC),
                datetime(1960, 1, 1, 0, 0, 0, 7, tzinfo=UTC),
            ],
        },
        [
            _START.replace(tzinfo=timezone(timedelta(hours=2))),
            _START.replace(tzinfo=UTC),
            datetime(1960, 1, 1, 0, 0, 0, 7, tzinfo=UTC),
        ],
    ),
    "words": (
        {
            pa.string(): ["", "a", "b"],
            pa.large_string(): ["a", "é", "zz" * 40],
            pa.dictionary(pa.int32(), pa.string()): ["a", "b"],
        },
        ["", "a", "é", "c"],
    ),
    "raw": (
        {
            pa.binary(3): [b"\0\0\0", b"abc", b"\xff\0\0"],
            pa.binary(): [b"", b"ab", b"abc", b"abcd"],
            pa.large_binary(): [b"abc", b"\xff"],
        },
        [b"", b"ab", b"abc", b"abcd", b"\xff\0"],
    ),
}
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file: its rows and how they are written."""

    table: pa.Table
    mode: Mode
    filters: Sequence[str]
    options: dict[str, Any]

    def write(self, path: Path) -> None:
        names = self.table.column_names
        write(
            path,
            self.table,
            self.mode,
            column_keys={"k_pii": names[:1]} if len(names) > 1 else {"k_pii": names},
            **self.options,
        )
        if self.filters:
            (report,) = sb.add_bloom_filters(path, columns=self.filters, keys=KEYRING).files
            assert report.error is None


@st.composite
def parts(draw: st.DrawFn, names: Sequence[str], modes: Sequence[Mode]) -> Part:
    """A file with some of the columns, in any mode and layout."""
    present = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    rows = draw(st.integers(0, 60))
    table = pa.table({name: draw(_column(name, rows)) for name in present})
    return Part(
        table=table,
        mode=draw(st.sampled_from(modes)),
        filters=draw(st.lists(st.sampled_from([n for n in present if n != "flag"]), unique=True))
        if set(present) - {"flag"}
        else [],
        options={
            "row_group_size": draw(st.sampled_from([7, 25, 100])),
            "write_batch_size": draw(st.sampled_from([3, 1000])),
            "data_page_size": draw(st.sampled_from([1, 40, 1 << 20])),
            "use_dictionary": draw(st.booleans()),
            "write_page_index": draw(st.booleans()),
            "write_statistics": draw(st.booleans()),
            "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
            "compression": draw(st.sampled_from(["NONE", "SNAPPY", "ZSTD"])),
        },
    )


_TYPED = {name: st.sampled_from(list(types.items())) for name, (types, _) in EVOLVING.items()}


@st.composite
def _column(draw: st.DrawFn, name: str, rows: int) -> pa.Array:
    of, pool = POOLS[name] if name in POOLS else draw(_TYPED[name])
    # Sorted columns have pages and row groups apart; those of one value have tight bounds.
    some = draw(st.lists(st.sampled_from([*pool, None]), min_size=1, max_size=4))
    values = draw(st.lists(st.sampled_from(some), min_size=rows, max_size=rows))
    if draw(st.booleans()):
        values.sort(key=lambda v: (v is None, pool.index(v) if v is not None else 0))
    return pa.array(values, of)


def predicates(names: Sequence[str]) -> st.SearchStrategy[Any]:
    """Predicates as Python structures."""
    return st.recursive(
        st.sampled_from(names).flatmap(_condition),
        lambda inner: st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        max_leaves=4,
    )


def _condition(name: str) -> st.SearchStrategy[Any]:
    value = st.sampled_from((POOLS if name in POOLS else EVOLVING)[name][1])
    column = st.just(name)
    return st.one_of(
        st.tuples(column, st.sampled_from(OPERATORS), value),
        st.tuples(column, st.sampled_from(["in", "not in"]), st.lists(value, max_size=4)),
        st.tuples(column, st.sampled_from(["is null", "is not null"])),
    )


_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def expected(table: pa.Table, where: Any) -> pa.Table:
    """The rows of the whole table for which pyarrow.compute finds the where true."""
    return table.filter(_truth(table, where))


def _truth(table: pa.Table, where: Any) -> Any:
    if where[0] in ("and", "or"):
        join = pc.and_kleene if where[0] == "and" else pc.or_kleene
        return functools.reduce(join, [_truth(table, part) for part in where[1:]])
    name, operation, *value = where
    column = table.column(name)
    if operation in ("is null", "is not null"):
        return pc.is_null(column) if operation == "is null" else pc.is_valid(column)
    if name in EVOLVING:
        return pa.chunked_array(
            [
                pa.array(
                    [_python_truth(v, operation, value[0]) for v in column.to_pylist()], pa.bool_()
                )
            ]
        )
    if column.type == pa.float16():
        column = column.cast(pa.float32())
    if operation in _COMPARE:
        return _COMPARE[operation](column, pa.scalar(value[0], column.type))
    # A list is a row of comparisons; an empty one is false, of a null unknown.
    found: Any = pc.if_else(pc.is_valid(column), False, pa.scalar(None, pa.bool_()))
    for one in value[0]:
        found = pc.or_kleene(found, pc.equal(column, pa.scalar(one, column.type)))
    return found if operation == "in" else pc.invert(found)


def _python_truth(value: Any, name: str, asked: Any) -> bool | None:
    """Python compares numbers of all its types exactly, which pyarrow refuses for large ones."""
    return None if value is None else TRUTHS[name](value, asked)


def whole(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows in ``schema``, which must have every value of every file: no cast may lose one."""
    return pa.concat_tables(
        [
            table.cast(pa.schema([schema.field(name) for name in table.column_names]))
            for table in tables
        ],
        promote_options="default",
    ).select(schema.names)


def same(left: pa.Table, right: pa.Table) -> bool:
    """Whether two tables have the same rows in the same order, bit for bit."""
    return left.schema == right.schema and repr(left.to_pylist()) == repr(right.to_pylist())
