"""Dates and times as ISO 8601 texts: to the nanosecond, and beyond Python's years 1 to 9999."""

from __future__ import annotations

import re
from datetime import date, timedelta

SECOND = 1_000_000_000
#: Nanoseconds of each unit.
TICKS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}

_DURATION_UNITS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<week>[0-9]+)W)?(?:(?P<day>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hour>[0-9]+)H)?(?:(?P<minute>[0-9]+)M)?"
    r"(?:(?P<second>[0-9]+)(?:\.(?P<fraction>[0-9]{1,9}))?S)?)?"
)

#: The Gregorian calendar repeats every 400 years.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400


def day_text(days: int) -> str:
    """The day that is so many days after 1970-01-01, of any year."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date(1970, 1, 1) + timedelta(days=rest)
    return f"{day.year + cycles * _CYCLE_YEARS:04}-{day:%m-%d}"


def time_text(nanos: int) -> str:
    """The time of the day, with nine digits of its second."""
    seconds, fraction = divmod(nanos, SECOND)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction:09}"


def timestamp_text(nanos: int, *, is_utc: bool) -> str:
    """The instant that is so many nanoseconds after 1970."""
    days, of_day = divmod(nanos, 86_400 * SECOND)
    return f"{day_text(days)}T{time_text(of_day)}{'Z' if is_utc else ''}"


def duration_text(nanos: int) -> str:
    """A length of time in ISO 8601, such as ``P1DT2H30M`` or ``-PT0.5S``; a day has 24 hours."""
    seconds, fraction = divmod(abs(nanos), SECOND)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    part = f".{fraction:09}".rstrip("0") if fraction else ""
    of_day = [(hour, "H"), (minute, "M")]
    clock = "".join(f"{number}{unit}" for number, unit in of_day if number)
    clock += f"{second}{part}S" if second or fraction else ""
    day = f"{days}D" if days else ""
    text = "P" + day + (f"T{clock}" if clock else "")
    return ("-" if nanos < 0 else "") + (text if day or clock else "PT0S")


def duration_nanos(text: str) -> int:
    """The length of time that :func:`duration_text` writes; weeks are read too.

    ValueError for any other text, months and years among them: they have no one length.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[unit] for unit in _DURATION_UNITS):
        raise ValueError("not a duration")
    seconds = sum(int(found[unit] or 0) * size for unit, size in _DURATION_UNITS.items())
    nanos = seconds * SECOND + int((found["fraction"] or "").ljust(9, "0"))
    return -nanos if found["sign"] == "-" else nanos
