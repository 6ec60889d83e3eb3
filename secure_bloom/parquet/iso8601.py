"""Dates and times as ISO 8601 texts: to the nanosecond, and beyond Python's years 1 to 9999."""

from __future__ import annotations

import re
from datetime import time

from secure_bloom.parquet.days import DAY, day_number, day_text

SECOND = 1_000_000_000
_DAY_SECONDS = 86_400
#: Nanoseconds of each unit.
TICKS = {"s": SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}

_DURATION_UNITS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<week>[0-9]+)W)?(?:(?P<day>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hour>[0-9]+)H)?(?:(?P<minute>[0-9]+)M)?"
    r"(?:(?P<second>[0-9]+)(?:\.(?P<fraction>[0-9]{1,9}))?S)?)?"
)

_INSTANT = re.compile(
    DAY + r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?"
)


def time_text(nanos: int) -> str:
    """Return the time of the day, with nine digits of its second."""
    seconds, fraction = divmod(nanos, SECOND)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction:09}"


def timestamp_text(nanos: int, *, is_utc: bool) -> str:
    """Return the instant that is ``nanos`` nanoseconds after 1970."""
    days, of_day = divmod(nanos, 86_400 * SECOND)
    return f"{day_text(days)}T{time_text(of_day)}{'Z' if is_utc else ''}"


def timestamp_nanos(text: str, *, is_utc: bool) -> int:
    """Return the nanoseconds from 1970 to the instant in a text that :func:`timestamp_text` writes.

    A zone is read where ``is_utc``; ValueError for any other text.
    """
    found = _INSTANT.fullmatch(text)
    if found is None or (found["zone"] and not is_utc):
        raise ValueError("not a timestamp")
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    time(hour, minute, second)  # refuses 24:00 and the like
    seconds = ((day_number(found["date"]) * 24 + hour) * 60 + minute) * 60 + second
    fraction = int((found["fraction"] or "").ljust(9, "0"))
    return (seconds - _zone_seconds(found["zone"])) * SECOND + fraction


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    away = int(zone[1:3]) * 3600 + int(zone[3:].lstrip(":") or 0) * 60
    if away >= _DAY_SECONDS:
        raise ValueError("not a zone")
    return -away if zone[0] == "-" else away


def duration_text(nanos: int) -> str:
    """Return a length of time in ISO 8601, such as ``P1DT2H30M`` or ``-PT0.5S``.

    A day has 24 hours.
    """
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
    """Return the length of time that :func:`duration_text` writes; weeks are read too.

    ValueError for any other text, months and years among them: they have no one length.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[unit] for unit in _DURATION_UNITS):
        raise ValueError("not a duration")
    seconds = sum(int(found[unit] or 0) * size for unit, size in _DURATION_UNITS.items())
    nanos = seconds * SECOND + int((found["fraction"] or "").ljust(9, "0"))
    return -nanos if found["sign"] == "-" else nanos
