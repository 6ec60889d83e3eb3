"""An open table in Polars: the rows and types of scan_parquet on the plain files."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.reading import TableRead
from testing.tables import KEYRING, Mode, write

ROWS, GROUP = 40, 10
TABLE = pa.table(
    {
        "n": pa.array([*range(ROWS - 1), None], pa.int32()),
        "text": [f"user{i:02}" for i in range(ROWS)],
        "price": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
        "at": pa.array(
            [datetime(2024, 1, 1, i % 24) for i in range(ROWS)], pa.timestamp("us", "UTC")
        ),
        "day": pa.array([date(2024, 1, 1 + i % 28) for i in range(ROWS)]),
        "share": pa.array([i / 8 for i in range(ROWS - 1)] + [float("nan")], pa.float32()),
        "flags": [[i, i + 1] for i in range(ROWS)],
        "raw": [bytes([i]) for i in range(ROWS)],
    }
)
n, text, share = pl.col("n"), pl.col("text"), pl.col("share")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "plain.parquet", TABLE, Mode.PLAIN, row_group_size=GROUP)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sb.Table]:
    path = tmp_path / "x.parquet"
    write(path, TABLE, Mode.ENCRYPTED, row_group_size=GROUP, column_keys={"k_pii": ["text"]})
    sb.add_bloom_filters(path, columns=["text", "n"], keys=KEYRING)
    with sb.open_table(path, keys=KEYRING) as opened:
        yield opened


QUERIES: list[Callable[[pl.LazyFrame], pl.LazyFrame]] = [
    lambda rows: rows,
    lambda rows: rows.select("text", "n"),
    lambda rows: rows.filter(text == "user07"),
    lambda rows: rows.filter(text == "nobody"),
    lambda rows: rows.filter(text.is_in(["user07", "user31"])).select("n"),
    lambda rows: rows.filter((text == "user07") & (n * 2 == 14)),
    lambda rows: rows.filter((n > 30) | text.str.contains("07")),
    lambda rows: rows.filter(share > 3),
    lambda rows: rows.filter(share == 0.1),
    lambda rows: rows.filter(share.is_nan()),
    lambda rows: rows.filter(n.is_null()),
    lambda rows: rows.filter(n != 5).head(7),
    lambda rows: rows.head(15),
    lambda rows: rows.filter(n == 7.0),
    lambda rows: rows.filter(pl.col("price") == 2.5).select("price"),
    lambda rows: rows.select(pl.len()),
    lambda rows: rows.filter(text > "user20").select(n.sum()),
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_the_plain_files(
    plain: Path, table: sb.Table, query: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> None:
    assert_frame_equal(
        query(table.scan_polars()).collect(), query(pl.scan_parquet(plain)).collect()
    )


def test_types_are_those_of_polars(plain: Path, table: sb.Table) -> None:
    assert table.scan_polars().collect_schema() == pl.scan_parquet(plain).collect_schema()


def test_a_key_and_a_column_are_pushed_down(
    table: sb.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[TableRead] = []
    ask = sb.Table.ask

    def noted(*given: object, **named: object) -> TableRead:
        reads.append(ask(*given, explain=True, **named))  # type: ignore[arg-type]
        return reads[-1]

    monkeypatch.setattr(sb.Table, "ask", noted)
    asked = (text == "nobody") & text.str.contains("o")
    assert table.scan_polars().filter(asked).select("n").collect().height == 0
    (read,) = reads
    assert set(read.schema.names) == {"n", "text"}
    assert read.report().row_groups_read == 0


def test_a_chain_of_conditions_is_parsed_once(
    table: sb.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = functools.reduce(operator.and_, [n != number for number in range(2, 130)])
    parsed: list[int] = []
    loads = json.loads

    def noted(content: str) -> object:
        parsed.append(len(content))
        return loads(content)

    monkeypatch.setattr(json, "loads", noted)
    assert table.scan_polars().filter(asked).select("n").collect()["n"].to_list() == [0, 1]
    assert sum(parsed) < 3 * len(asked.meta.serialize(format="json"))


def test_a_chain_that_is_too_long_to_be_pushed_down_is_answered(table: sb.Table) -> None:
    asked = functools.reduce(operator.or_, [n == number for number in range(37, 600)])
    assert table.scan_polars().filter(asked).select("n").collect()["n"].to_list() == [37, 38]
    with pytest.raises(PolicyError, match="nests deeper than 100 levels"):
        table.read(where=asked)


#: What may follow a scan, in any order: Polars pushes some of it into the source.
STEPS: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "head": lambda rows: rows.head(13),
    "tail": lambda rows: rows.tail(21),
    "slice": lambda rows: rows.slice(4, 17),
    "slice back": lambda rows: rows.slice(-30, 12),
    "more than two": lambda rows: rows.filter(n > 2),
    "one text": lambda rows: rows.filter(text == "user07"),
    "later texts": lambda rows: rows.filter(text >= "user12"),
    "floats": lambda rows: rows.filter(share < 3),
    "no null": lambda rows: rows.filter(n.is_not_null()),
    "select": lambda rows: rows.select("text", "n", "share"),
    "drop": lambda rows: rows.drop("flags", strict=False),
    "with_columns": lambda rows: rows.with_columns(n=n + 1),
    "with_row_index": lambda rows: rows.with_row_index("at_row").drop("at_row"),
    "rows by index": lambda rows: rows.with_row_index("i").filter(pl.col("i") > 5).drop("i"),
    "sort": lambda rows: rows.sort("text", descending=True),
    "sort and limit": lambda rows: rows.sort("n", nulls_last=True).limit(9),
    "group_by": lambda rows: (
        rows.group_by(n % 3, maintain_order=True)
        .agg(text.min(), share.sum())
        .select("text", "n", "share")
    ),
    "join": lambda rows: rows.join(
        pl.LazyFrame({"text": ["user03", "user05", "user11", "user30"]}),
        on="text",
        maintain_order="left",
    ),
    "unique": lambda rows: rows.unique(subset="n", keep="first", maintain_order=True),
}


@pytest.mark.parametrize("first", STEPS)
def test_every_order_of_steps_has_the_rows_of_polars(
    plain: Path, table: sb.Table, first: str, quick: bool
) -> None:
    ours, theirs = table.scan_polars(), pl.scan_parquet(plain)
    orders = [(first, second, third) for second in STEPS for third in [None, "more than two"]]
    if quick:
        turn = 2 * [*STEPS].index(first)
        orders = [order for at, order in enumerate(orders) if (at + turn) % 8 in (0, 3)]
    queries = [
        [
            query.pipe(STEPS[first]).pipe(STEPS[second]).pipe(STEPS.get(third, lambda it: it))
            for first, second, third in orders
        ]
        for query in (ours, theirs)
    ]
    for order, found, wanted in zip(orders, *map(pl.collect_all, queries), strict=True):
        assert found.equals(wanted, null_equal=True) or found.rows() == wanted.rows(), order


KINDS = pl.DataFrame(
    {
        "enum": pl.Series(["z", "m", "a", None] * 5, dtype=pl.Enum(["z", "m", "a"])),
        "category": pl.Series(["z", "m", "a", None] * 5, dtype=pl.Categorical),
        "price": pl.Series([Decimal(i) / 10 for i in range(20)], dtype=pl.Decimal(9, 2)),
        "large": [2**53 + i for i in range(20)],
        "small": pl.Series(range(20), dtype=pl.UInt8),
        "ns": pl.Series([1_700_000_000_000_000_000 + i for i in range(20)]).cast(pl.Datetime("ns")),
        "ms": pl.Series([1_700_000_000_000 + i for i in range(20)]).cast(pl.Datetime("ms", "UTC")),
        "day": pl.Series(range(20)).cast(pl.Date),
        "took": pl.Series(range(20)).cast(pl.Duration("us")),
        "clock": pl.Series(range(20)).cast(pl.Int64).cast(pl.Time),
        "flag": [i % 3 == 0 for i in range(20)],
        "raw": [bytes([i]) for i in range(20)],
        "inner": [{"share": i / 10, "kind": "zma"[i % 3]} for i in range(20)],
    },
    schema_overrides={"inner": pl.Struct({"share": pl.Float32, "kind": pl.Enum(["z", "m", "a"])})},
)
VALUES: dict[str, list[object]] = {
    "enum": ["m", "q"],
    "category": ["m", "q"],
    "price": [0.1, Decimal("0.10"), Decimal("0.105"), 1, 1.5],
    "large": [2**53, float(2**53), float(2**53 + 2), 2**53 + 1],
    "small": [3, 3.0, 3.5, -1, 300],
    "ns": [datetime(2023, 11, 14, 22, 13, 20), datetime(2023, 11, 14, 22, 13, 20, 1)],
    "ms": [datetime(2023, 11, 14, 22, 13, 20, 1500, UTC), datetime(2023, 11, 14, 22, 13, 20, 2000)],
    "day": [date(1970, 1, 3), datetime(1970, 1, 3, 12), datetime(1970, 1, 3)],
    "took": [timedelta(microseconds=3)],
    "clock": [time(0, 0, 0, 1), time(0)],
    "flag": [True, False],
    "raw": [b"\x03", b""],
}
INNER: dict[str, list[object]] = {"share": [0.1, 0.5, 1], "kind": ["m", "q"]}
COMPARISONS: list[Callable[[pl.Expr, Any], pl.Expr]] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    lambda column, value: value < column,
    lambda column, value: ~(column < value),
    lambda column, value: column.is_in([value]),
    lambda column, value: ~column.is_in([value]),
    lambda column, value: column.is_between(value, value),
    lambda column, value: column.eq_missing(value),
    lambda column, value: (column == value) | column.is_null(),
    lambda column, value: pl.lit(True) & (column <= value),
]


def _answer(rows: pl.LazyFrame, condition: pl.Expr) -> list[int] | type[Exception]:
    try:
        return rows.filter(condition).collect()["id"].to_list()
    except pl.exceptions.PolarsError as error:
        return type(error)


# Of each value every fourth comparison; those of its neighbours are the others.
@pytest.mark.parametrize("turn", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_every_type_is_compared_as_polars_does(tmp_path: Path, turn: int) -> None:
    path = tmp_path / "x.parquet"
    KINDS.with_row_index("id").write_parquet(path, row_group_size=3)
    columns = [name for name in VALUES if name != "flag"]
    sb.add_bloom_filters(path, columns=columns)
    asked = [(pl.col(name), value) for name in VALUES for value in VALUES[name]]
    inner = pl.col("inner").struct.field
    asked += [(inner(name), value) for name in INNER for value in INNER[name]]
    whole = pl.read_parquet(path).lazy()
    with sb.open_table(path) as opened:
        scan = opened.scan_polars()
        for number, (column, value) in enumerate(asked):
            for compared in COMPARISONS[(number + turn) % 4 :: 4]:
                try:
                    condition = compared(column, value)
                except TypeError:
                    continue
                # Not scan_parquet: it refuses an unknown category where it compares statistics.
                wanted = _answer(whole, condition)
                assert _answer(scan, condition) == wanted, condition
