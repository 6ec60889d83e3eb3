"""Numbers, days, times and durations as texts, and the values that a text writes.

    number   [+-] digits [. digits] [e [+-] digits]             1.5  .5   2e-3

Digits are 0 to 9.  Python's own constructors also take ``1_000``, spaces around, and the digits of
other scripts. All of these are more likely a slip than a number.  Every function that reads a text
raises ValueError for any other text.

Days and times are in ISO 8601, to the nanosecond.  Python has the years 1 to 9999, but a DATE
reaches five million years in both directions.  The Gregorian calendar is continued, with a year 0.
A year of more than four digits has a sign in ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)

#: The day of a text; a year has four digits or more, and a sign where it is below 0.
DAY = r"(?P<date>-?\d{3,12}-\d\d-\d\d)"
# Three digits after a sign: the sign is one of the four places that `day_text` fills.
_DAY = re.compile(r"(-\d{3,12}|\d{4,12})-(\d\d)-(\d\d)")
_EPOCH = date(1970, 1, 1)
#: The Gregorian calendar repeats itself.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
#: The years of the cycle in which Python counts.
_FIRST_YEAR = 2000

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

#: An offset from UTC. Local mean times have seconds, and Python's offsets may have fractions.
ZONE = r"Z|[+-]\d\d(?::?\d\d(?::?\d\d(?:\.\d{1,9})?)?)?"
_ZONE = re.compile(r"([+-])(\d\d):?(\d\d)?:?(\d\d)?(?:\.(\d{1,9}))?")
_INSTANT = re.compile(
    DAY + r"(?:[T ](?P<hour>\d\d)(?::(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?)?"
    rf"\s*(?P<zone>{ZONE})?)?"
)
#: date64 counts milliseconds.
_DAY_MILLISECONDS = 86_400_000


def floating_number(text: str) -> float:
    """Return the double nearest to the number in ``text``; infinities and NaN by name."""
    if not _NOT_FINITE.fullmatch(text) and not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return float(text)


def exact_number(text: str) -> Decimal:
    """Return the finite number that ``text`` writes, with all its digits."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    try:
        return Decimal(text)
    except InvalidOperation:
        # The exponent is beyond what decimal counts, and so beyond every column.
        raise ValueError("not a number that a column can hold") from None


def shortest_decimal(number: float) -> Decimal:
    """Return the decimal number with the fewest digits that reads back as this double.

    For example, 0.1 for the double 0.1.
    """
    return Decimal(repr(float(number)))


def day_text(days: int) -> str:
    """Return the day that is ``days`` days after 1970-01-01, in any year."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    # divmod rounds down, so the rest is never negative, and its day is one that Python has.
    day = date.fromordinal(_EPOCH.toordinal() + rest)
    return f"{day.year + cycles * _CYCLE_YEARS:04}-{day:%m-%d}"


def day_number(text: str) -> int:
    """Return the days from 1970-01-01 to the day in a text of :func:`day_text`."""
    found = _DAY.fullmatch(text)
    if found is None:
        raise ValueError("not a day")
    year, month, day = map(int, found.groups())
    cycles, rest = divmod(year - _FIRST_YEAR, _CYCLE_YEARS)
    return (date(_FIRST_YEAR + rest, month, day) - _EPOCH).days + cycles * _CYCLE_DAYS


def time_text(nanos: int) -> str:
    """Return the time of the day, with nine digits after the seconds."""
    seconds, fraction = divmod(nanos, SECOND)
    minutes, second = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction:09}"


def timestamp_text(nanos: int, *, is_utc: bool) -> str:
    """Return the instant that is ``nanos`` nanoseconds after 1970."""
    days, of_day = divmod(nanos, 86_400 * SECOND)
    return f"{day_text(days)}T{time_text(of_day)}{'Z' if is_utc else ''}"


def timestamp_nanos(text: str, *, is_utc: bool) -> int:
    """Return the nanoseconds from 1970 to the instant in a text of :func:`timestamp_text`.

    A zone is accepted if ``is_utc``. Raises ValueError for any other text.
    """
    found = _INSTANT.fullmatch(text)
    if found is None or (found["zone"] and not is_utc):
        raise ValueError("not a timestamp")
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    time(hour, minute, second)  # refuses 24:00 and the like
    seconds = ((day_number(found["date"]) * 24 + hour) * 60 + minute) * 60 + second
    fraction = int((found["fraction"] or "").ljust(9, "0"))
    return seconds * SECOND + fraction - zone_nanos(found["zone"])


def zone_nanos(zone: str | None) -> int:
    """Return the nanoseconds by which a zone of :data:`ZONE` is ahead of UTC.

    Raises ValueError for a day and more.
    """
    if zone is None or zone == "Z":
        return 0
    found = _ZONE.fullmatch(zone)
    if found is None:
        raise ValueError("not a zone")
    sign, *parts, fraction = found.groups()
    hours, minutes, seconds = (int(part or 0) for part in parts)
    away = (hours * 60 + minutes) * 60 + seconds
    if away >= _DAY_SECONDS or max(minutes, seconds) > 59:
        raise ValueError("not a zone")
    nanos = away * SECOND + int((fraction or "").ljust(9, "0"))
    return -nanos if sign == "-" else nanos


def duration_text(nanos: int) -> str:
    """Return a duration in ISO 8601, such as ``P1DT2H30M`` or ``-PT0.5S``.

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
    """Return the duration in a text of :func:`duration_text`. Weeks are accepted too.

    Raises ValueError for any other text, also for months and years, which have no fixed length.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found[unit] for unit in _DURATION_UNITS):
        raise ValueError("not a duration")
    seconds = sum(int(found[unit] or 0) * size for unit, size in _DURATION_UNITS.items())
    nanos = seconds * SECOND + int((found["fraction"] or "").ljust(9, "0"))
    return -nanos if found["sign"] == "-" else nanos


def temporal_text(scalar: pa.Scalar) -> str | None:
    """Return the text of a scalar that is not null.

    Return None if it is no date, time or duration.  Python's own types end with the year 9999 and
    with microseconds. These texts are exact.
    """
    # Imported here: to read a number in a condition takes no pyarrow.
    import pyarrow as pa

    texts: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]], ...] = (
        (pa.types.is_timestamp, lambda s: timestamp_text(_nanos(s), is_utc=s.type.tz is not None)),
        (pa.types.is_time, lambda s: time_text(_nanos(s))),
        (pa.types.is_duration, lambda s: duration_text(_nanos(s))),
        (pa.types.is_date32, lambda s: day_text(s.value)),
        (pa.types.is_date64, lambda s: day_text(s.value // _DAY_MILLISECONDS)),
    )
    return next((text(scalar) for accepts, text in texts if accepts(scalar.type)), None)


def _nanos(scalar: pa.Scalar) -> int:
    nanos: int = scalar.value * TICKS[scalar.type.unit]
    return nanos
