"""Expressions of Polars find the rows that Polars finds."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.evaluation import true_rows
from secure_bloom.predicates.from_polars import from_polars

NAN = float("nan")
FRAME = pl.DataFrame(
    {
        "row": range(12),
        "n": [1, 2, 3, None, 5, -1, 2, 0, 9, 3, None, 7],
        "f": [0.5, NAN, None, -0.0, 0.0, 3.0, -2.5, NAN, float("inf"), 1.0, 2.0, -9.0],
        "t": ["a", "ab", "abc", None, "b", "", "aB", "ab\U0010ffff", "\ud7ff", "\ue000", "ac", "é"],
        "d": [datetime.date(2026, 1, day) for day in range(1, 13)],
        "at": [datetime.datetime(2026, 1, 1, hour, tzinfo=datetime.UTC) for hour in range(12)],
        "p": [Decimal(n) / 4 for n in range(12)],
        "b": [n % 3 == 0 for n in range(12)],
        "s": [{"zip": f"{n:02d}"} for n in range(12)],
    }
)
COLUMNS: dict[str, list[Any]] = {
    "n": [-1, 0, 2, 3, 100],
    "f": [-2.5, 0.0, 1.0, 3.0, float("inf")],
    "t": ["", "a", "ab", "b", "\ue000"],
    "d": [datetime.date(2026, 1, 4), datetime.date(2027, 1, 1)],
    "at": [datetime.datetime(2026, 1, 1, 5, tzinfo=datetime.UTC)],
    "p": [Decimal("0.75"), Decimal("2.00")],
    "b": [True],
}

CLOSED: list[Any] = ["both", "left", "right", "none"]


def _leaf(dice: random.Random) -> pl.Expr:
    name = dice.choice(list(COLUMNS))
    column, value = pl.col(name), dice.choice(COLUMNS[name])
    listed: list[Any] = dice.choices([*COLUMNS[name], *([None] if name == "n" else [])], k=3)
    ways = [
        lambda: column == value,
        lambda: column != value,
        lambda: column < value,
        lambda: column >= value,
        lambda: pl.lit(value) < column,
        lambda: column <= value,
        lambda: column > value,
        lambda: column.is_in(listed),
        lambda: column.is_between(
            pl.lit(value), pl.lit(value), closed=dice.choice(["both", "left", "none"])
        ),
        column.is_null,
        column.is_not_null,
        lambda: pl.col("t").str.starts_with(dice.choice(["", "a", "ab", "\ud7ff", "\U0010ffff"])),
        lambda: pl.col("s").struct.field("zip") >= "05",
    ]
    return dice.choice(ways)()


def _expression(dice: random.Random, depth: int) -> pl.Expr:
    if depth and dice.random() < 0.75:
        left, right = _expression(dice, depth - 1), _expression(dice, depth - 1)
        return dice.choice([~left, left | right, left & right])
    return _leaf(dice)


def test_an_expression_finds_the_rows_that_polars_finds() -> None:
    dice, table = random.Random(38), FRAME.to_arrow()
    for _ in range(400):
        expression = _expression(dice, 3)
        found = table.filter(true_rows(bind(from_polars(expression), table.schema), table))
        wanted = FRAME.filter(expression)["row"].to_list()
        assert found["row"].to_pylist() == wanted, str(expression)


def test_read_table_takes_an_expression_of_polars(tmp_path: Path) -> None:
    pq.write_table(FRAME.to_arrow(), tmp_path / "x.parquet", row_group_size=3)
    where = (pl.col("n") > 2) & pl.col("t").is_in(["abc", "\ue000"])
    assert sb.read_table(tmp_path, where=where, columns=["row"])["row"].to_pylist() == [2, 9]


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (pl.col("n") == pl.col("row"), "not compared with each other"),
        (pl.col("b"), "== True"),
        (pl.col("n") + 1 == 2, "columns compared with values"),
        (pl.col("n").cast(pl.String) == "2", "columns compared with values"),
        (pl.col("n").eq_missing(2), "columns compared with values"),
        (pl.col("n").is_in([1, None], nulls_equal=True), "columns compared with values"),
        (pl.col("^n$") == 1, "columns compared with values"),
        (pl.all() == 1, "columns compared with values"),
        (pl.col("n").max() == 2, "columns compared with values"),
        (pl.lit(value=True), "columns compared with values"),
        ((pl.col("n") > 2) ^ pl.col("n").is_null(), "columns compared with values"),
    ],
    ids=str,
)
def test_what_cannot_be_translated_is_refused(expression: pl.Expr, hint: str) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        from_polars(expression)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("where", [pl.col("f") == NAN, pl.col("f").is_in([1.0, NAN])], ids=str)
def test_a_nan_among_the_values_is_refused(where: pl.Expr) -> None:
    with pytest.raises(sb.PolicyError, match="NaN"):
        from_polars(where)


def test_an_expression_that_is_too_deep_is_refused() -> None:
    where = pl.col("n") == 1
    for _ in range(101):
        where = ~where
    with pytest.raises(sb.PolicyError, match="deeper"):
        from_polars(where)
