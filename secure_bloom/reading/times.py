"""Dates and times as ISO 8601 texts, to the nanosecond and beyond the years that Python has."""

from __future__ import annotations

from datetime import date, timedelta

SECOND = 1_000_000_000
#: Nanoseconds of each unit.
TICKS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}

#: The Gregorian calendar repeats itself.
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
    """A length of time as Python writes it, with nine digits of its second."""
    days, of_day = divmod(nanos, 86_400 * SECOND)
    whole = "" if days == 0 else f"{days} day{'' if abs(days) == 1 else 's'}, "
    return f"{whole}{time_text(of_day).removeprefix('0')}"
