"""Intervals in the schema that Spark left in a footer; nothing else of it is believed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

st = pytest.importorskip("pyspark.sql.types")

from secure_bloom.spark.spark_schema import written_intervals  # noqa: E402

KEY = "org.apache.spark.sql.parquet.row.metadata"


def found(text: str | None, key: str = KEY) -> dict[str, Any]:
    marks = [SimpleNamespace(key=key, value=text)]
    footer = SimpleNamespace(metadata=SimpleNamespace(key_value_metadata=marks))
    return written_intervals(footer)  # type: ignore[arg-type]


def schema(**types: object) -> str:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return json.dumps({"type": "struct", "fields": fields})


def test_intervals_are_told_from_numbers() -> None:
    text = schema(
        a="interval day to second", b="interval month", c="long", d={"type": "struct", "fields": []}
    )
    assert found(text) == {"a": st.DayTimeIntervalType(0, 3), "b": st.YearMonthIntervalType(1, 1)}


@pytest.mark.parametrize("kind", ["interval", "interval day to month", "interval century", "Xday"])
def test_words_that_are_no_interval(kind: str) -> None:
    assert found(schema(a=kind)) == {}


@pytest.mark.parametrize(
    "text", [None, "", "no json", "[]", '{"fields": 7}', '{"fields": [{}]}', "[" * 10_000]
)
def test_a_damaged_schema_tells_nothing(text: str | None) -> None:
    assert found(text) == {}


def test_another_text_of_the_footer_is_not_asked() -> None:
    assert found(schema(a="interval day"), key="else") == {}
