"""Python values as the texts of conditions, CSV and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from secure_bloom.reports.text import without_commands


def text_of(value: object) -> str:
    """Return a value as a condition takes it. Nested values are JSON."""
    if isinstance(value, dict | list):
        return json_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    form = _FORMS.get(type(value))
    if form is not None:
        return form(value)
    if _is_interval(value):
        return _interval(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _duration(value: timedelta) -> str:
    from secure_bloom.parquet.texts import duration_text

    return duration_text(value // timedelta(microseconds=1) * 1000)


def _is_interval(value: object) -> bool:
    return type(value).__name__ == "MonthDayNano"


def _interval(value: Any) -> str:
    """Return an interval of SQL, pyarrow's ``MonthDayNano``, in ISO 8601.

    24 hours are a day, and a negative interval has one sign, as in a duration. If its parts have
    different signs, each part has its own sign.
    """
    from secure_bloom.parquet.texts import SECOND, duration_text

    full_days, of_day = divmod(abs(value.nanoseconds), 86_400 * SECOND)
    sign = -1 if value.nanoseconds < 0 else 1
    months, days = value.months, value.days + sign * full_days
    is_negative = max(months, days, sign * of_day) <= 0 and bool(months or days or of_day)
    if is_negative:
        months, days, sign = -months, -days, 1
    date = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    if not (date or of_day):
        return "PT0S"
    clock = duration_text(of_day).removeprefix("PT") if of_day else ""
    time = f"T{'-' if sign < 0 else ''}{clock}" if of_day else ""
    return f"{'-' if is_negative else ''}P{date}{time}"


#: Types whose ``str()`` a condition would not take, and ``str``, which is the commonest.
_FORMS: dict[type, Callable[[Any], str]] = {
    str: str,
    bytes: lambda value: f"hex:{value.hex()}",
    # Never with an exponent: 0E-7 is a zero.
    Decimal: lambda value: f"{value:f}",
    timedelta: _duration,
}


def json_text(value: object) -> str:
    """Return JSON in one line. Characters that would act on a terminal are escaped."""
    text = json.dumps(json_of(value), ensure_ascii=False)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    return without_commands(text)


def json_of(value: Any) -> Any:
    """Return a value for JSON. Bytes, dates, decimals and NaN become the same texts as in CSV."""
    if isinstance(value, dict):
        return {str(key): json_of(item) for key, item in value.items()}
    # An interval is a tuple too.
    if isinstance(value, list | tuple) and not _is_interval(value):
        return [json_of(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return text_of(value)
