"""Intervals in the schema that Spark leaves in a footer: Parquet stores them as plain numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as st

from secure_bloom.reading.table.footer import FileFooter

#: The key under which Spark writes its own schema into a footer.
_WRITTEN = "org.apache.spark.sql.parquet.row.metadata"

_INTERVALS: dict[tuple[str, ...], Callable[[int, int], st.DataType]] = {
    ("day", "hour", "minute", "second"): st.DayTimeIntervalType,
    ("year", "month"): st.YearMonthIntervalType,
}

_INTERVAL = re.compile(r"interval (\w+)(?: to (\w+))?")


def written_intervals(footer: FileFooter) -> dict[str, st.DataType]:
    """The interval columns, by name.

    Nothing else is taken from Spark's schema: a user-defined type in it would run code that the
    file chose.
    """
    marks = footer.metadata.key_value_metadata or []
    text = next((mark.value for mark in marks if mark.key == _WRITTEN), None)
    try:
        fields: Any = json.loads(text or "{}").get("fields", [])
        named = [(field["name"], field["type"]) for field in fields]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # The text is damaged or of another version; the Parquet types are used.
        return {}
    found = {name: _interval(text) for name, text in named if isinstance(text, str)}
    return {name: interval for name, interval in found.items() if interval is not None}


def _interval(text: str) -> st.DataType | None:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        return None
    first, last = match[1], match[2] or match[1]
    for fields, kind in _INTERVALS.items():
        if first in fields and last in fields:
            return kind(fields.index(first), fields.index(last))
    return None
