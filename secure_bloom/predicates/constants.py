"""The constants of SQL that a condition may have: typed literals, casts, and times from now.

    date '2026-01-31'    timestamp '2026-01-31 10:00:00Z'    '42'::int    cast('1.5' as decimal)
    current_date - interval '7 days'    now() - interval '1' hour    interval '90 minutes'

A constant is computed when the condition is parsed.  Times from now are in UTC.  A date or time
that Python has no type for (nanoseconds, years from 10000 on) is a scalar of pyarrow.  All
functions raise ValueError, without the text, for a text that is not of the type.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Final

from secure_bloom.parquet.literals import python_value
from secure_bloom.parquet.texts import TICKS, ZONE, day_number, exact_number, timestamp_nanos
from secure_bloom.predicates.tree import Numeral

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_PART: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?)\s*([a-z]+?)s?\b")


#: Python cuts a fraction to six digits without a word.
_FINER: Final = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")


def _date(text: str) -> object:
    try:
        # A timestamp is cut to its day, as SQL casts it.
        return datetime.fromisoformat(text).date()
    except ValueError:
        import pyarrow as pa

        return pa.scalar(day_number(text), pa.date32())


def _timestamp(text: str) -> object:
    if not _FINER.search(text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            # A year that Python does not have.
            pass
    import pyarrow as pa

    zone = "UTC" if _ZONED.search(text) else None
    nanos = timestamp_nanos(text, is_utc=zone is not None)
    unit = "us" if nanos % TICKS["us"] == 0 else "ns"
    return pa.scalar(nanos // TICKS[unit], pa.timestamp(unit, zone))


#: A timestamp with a zone at its end.
_ZONED: Final = re.compile(rf":.*(?:{ZONE})")


def _time(text: str) -> object:
    if not _FINER.search(text):
        return time.fromisoformat(text)
    import pyarrow as pa

    return pa.scalar(timestamp_nanos(f"1970-01-01T{text}", is_utc=False), pa.time64("ns"))


def _whole(text: str) -> Numeral:
    number = exact_number(text)
    if number != number.to_integral_value():
        # Databases round differently.
        raise ValueError("not a whole number")
    return Numeral(f"{number:.0f}")


def _number(text: str) -> Numeral:
    exact_number(text)
    return Numeral(text)


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


#: Type of SQL -> the value of a text cast to it.
TYPES: Final[dict[str, Callable[[str], object]]] = {
    "date": _date,
    **dict.fromkeys(("timestamp", "timestamptz", "datetime"), _timestamp),
    "time": _time,
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint", "long", "hugeint"), _whole),
    **dict.fromkeys(("decimal", "numeric", "double", "float", "real"), _number),
    **dict.fromkeys(("text", "varchar", "string", "char"), str),
    **dict.fromkeys(("boolean", "bool"), _boolean),
    "uuid": str,
}
#: Types whose literals are written as the name and a text.
LITERALS: Final = frozenset({"date", "timestamp", "timestamptz", "time"})
#: Words for the present time, with or without brackets.
NOW: Final = frozenset({"now", "current_timestamp", "localtimestamp"})
TODAY: Final = frozenset({"today", "current_date"})


def cast(value: object, kind: str) -> object:
    """Return a value cast to a type of SQL. Raises ValueError if it is not of the type."""
    value = python_value(value)
    text = value.isoformat() if isinstance(value, date | datetime | time) else str(value)
    try:
        return TYPES[kind](text)
    except (ArithmeticError, LookupError, ValueError):
        raise ValueError(f"not of type {kind}") from None


def present(word: str) -> date:
    """Return the value of a word of :data:`NOW` or :data:`TODAY`, in UTC."""
    # Without a zone: columns of local times take it too.
    now = datetime.now(UTC).replace(tzinfo=None)
    return now if word in NOW else now.date()


def moved(value: object, interval: str, *, back: bool) -> date:
    """Add an interval such as ``1 month 2 days`` to a date or time, or subtract it if ``back``.

    A date that is moved by hours is a time, as in SQL.
    """
    if not isinstance(value, date):
        raise ValueError("not an interval")
    sign = -1 if back else 1
    months, micros = _length(interval)
    # SQL moves by all months first: the last day of a month may depend on it.
    moment = _month_later(value, sign * months) if months else value
    if micros % (_SECONDS["day"] * 1_000_000) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    return moment + timedelta(microseconds=sign * micros)


def duration(interval: str) -> timedelta:
    """Return the length of an interval such as ``1 day 2.5 hours``. A month has no length."""
    months, micros = _length(interval)
    if months:
        raise ValueError("an interval of months")
    return timedelta(microseconds=micros)


def _length(interval: str) -> tuple[int, int]:
    """Return the months and the microseconds of an interval. Both are whole numbers."""
    parts = _PART.findall(interval.lower())
    if not parts or _PART.sub("", interval.lower()).strip():
        raise ValueError("not an interval")
    months = micros = Fraction()
    for number, unit in parts:
        if unit in _MONTHS:
            months += Fraction(number) * _MONTHS[unit]
        elif unit in _SECONDS:
            micros += Fraction(number) * _SECONDS[unit] * 1_000_000
        else:
            raise ValueError("an interval of another unit")
    # Databases differ on what a part of a month is, and on how less than a microsecond is rounded.
    if months.denominator != 1 or micros.denominator != 1:
        raise ValueError("an interval with a part of a month or of a microsecond")
    return int(months), int(micros)


def _month_later(moment: date, months: int) -> date:
    """Return the same day of another month, or its last day if the month is shorter."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))
