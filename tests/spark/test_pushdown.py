"""What of Spark's filters is passed on, and what is left to Spark."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessThanOrEqual,
    Not,
    StringContains,
)

from secure_bloom.predicates.from_text import from_text
from secure_bloom.spark.pushdown import QueriedTable, conditions, structure

STORED = pa.schema(
    {
        "id": pa.uint32(),
        "f": pa.float64(),
        "kind": pa.binary(),
        "s": pa.struct({"a": pa.int32()}),
        "s.a": pa.int32(),
        "list": pa.list_(pa.int32()),
        "at": pa.timestamp("ms", "UTC"),
    }
)
OWN = pa.schema(
    {
        "id": pa.int64(),
        "f": pa.float64(),
        "kind": pa.string(),
        "s": pa.struct({"a": pa.int32()}),
        "s.a": pa.int32(),
        "list": pa.list_(pa.int32()),
        "at": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
    }
)


def table(spark: pa.Schema = OWN) -> QueriedTable:
    folders = [{"day": "2024-03-01"}, {"day": "2024-02-01"}, {"day": None}]
    return QueriedTable(stored=STORED, spark=spark, own=OWN, names={"ID": "id"}, folders=folders)


def plain(pushed: Filter, spark: pa.Schema = OWN) -> list[tuple[Any, ...]]:
    """The conditions with values of Python."""
    return [
        (name, str(operator), *(_plain(value) for value in values))
        for name, operator, *values in conditions([pushed], table(spark))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.as_py() if isinstance(value, pa.Scalar) else value


@pytest.mark.parametrize(
    ("pushed", "passed_on"),
    [
        (EqualTo(("id",), 5), ("id", "=", 5)),
        (Not(EqualTo(("id",), 5)), ("id", "!=", 5)),
        (EqualNullSafe(("id",), 5), ("id", "=", 5)),
        (EqualNullSafe(("id",), None), ("id", "is null")),
        (Not(EqualNullSafe(("id",), None)), ("id", "is not null")),
        (In(("id",), (5, None, 6)), ("id", "in", (5, 6))),
        (Not(In(("id",), (5, 6))), ("id", "not in", (5, 6))),
        (IsNull(("s", "a")), None),
        (IsNotNull(("f",)), ("f", "is not null")),
        # NaN is greater than any number to Spark.
        (GreaterThan(("f",), 1.5), ("f", "not <=", 1.5)),
        (Not(GreaterThan(("f",), 1.5)), ("f", "<=", 1.5)),
        (Not(LessThanOrEqual(("f",), 1.5)), ("f", "not <=", 1.5)),
        # An ENUM is text to Spark and bytes to Arrow; `hex:` is nothing special in it.
        (EqualTo(("kind",), "hex:00"), ("kind", "=", b"hex:00")),
        # Folders are asked at once: the texts that are true are passed on.
        (GreaterThan(("day",), date(2024, 2, 15)), ("day", "in", ("2024-03-01",))),
        (EqualTo(("day",), date(1999, 1, 1)), ("day", "in", ())),
        (IsNull(("day",)), ("day", "is null")),
    ],
    ids=repr,
)
def test_a_filter_becomes_a_condition_that_loses_no_row(
    pushed: Filter, passed_on: tuple[Any, ...] | None
) -> None:
    assert plain(pushed) == ([] if passed_on is None else [passed_on])


@pytest.mark.parametrize(
    "pushed",
    [
        Not(In(("id",), (5, None))),
        Not(EqualNullSafe(("id",), 5)),
        EqualTo(("f",), math.nan),
        In(("f",), (1.0, math.nan)),
        StringContains(("kind",), "x"),
        EqualTo(("list",), [1, 2]),
        EqualTo(("id",), -1),
        EqualTo(("id",), Decimal("1.5")),
        EqualTo(("absent",), 1),
        # `s.a` is a column of that name; the member of the structure is another one.
        EqualTo(("s", "a"), 1),
        EqualTo(("s", "b"), 1),
    ],
    ids=repr,
)
def test_a_filter_without_such_a_condition_is_left_to_spark(pushed: Filter) -> None:
    assert plain(pushed) == []


def test_a_column_in_another_type_is_not_judged() -> None:
    as_text = pa.schema([field.with_type(pa.string()) for field in OWN])
    assert plain(GreaterThan(("id",), "10"), as_text) == []


def test_a_name_in_another_case() -> None:
    asked = pa.schema([OWN.field("id").with_name("ID")])
    assert plain(EqualTo(("ID",), 5), asked) == [("id", "=", 5)]


def test_a_text_as_a_structure() -> None:
    text = "(a = 1 or b in (2, 3)) and c is null"
    assert structure(from_text(text)) == (
        "and",
        ("or", ("a", "=", "1"), ("b", "in", ("2", "3"))),
        ("c", "is null"),
    )
