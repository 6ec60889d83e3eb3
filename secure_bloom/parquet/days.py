"""Days of any year as ISO 8601 texts, and as the numbers that a DATE holds.

Python has the years 1 to 9999; a DATE reaches five million years in both directions.  The Gregorian
calendar goes on as it is, with a year 0; ISO 8601 writes years beyond four digits with more.
"""

from __future__ import annotations

import re
from datetime import date

#: The day of a text; a year has four digits or more, and a sign where it is below 0.
DAY = r"(?P<date>-?\d{3,12}-\d\d-\d\d)"
# Three digits behind a sign: the sign is one of the four places that `day_text` fills.
_DAY = re.compile(r"(-\d{3,12}|\d{4,12})-(\d\d)-(\d\d)")
_EPOCH = date(1970, 1, 1)
#: The Gregorian calendar repeats itself.
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
#: The years of the cycle in which Python counts.
_FIRST_YEAR = 2000


def day_text(days: int) -> str:
    """Return the day that is ``days`` days after 1970-01-01, of any year."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    # divmod rounds down, so the rest is never negative, and its day is one that Python has.
    day = date.fromordinal(_EPOCH.toordinal() + rest)
    return f"{day.year + cycles * _CYCLE_YEARS:04}-{day:%m-%d}"


def day_number(text: str) -> int:
    """Return the days from 1970-01-01 to the day in a text of :func:`day_text`; else ValueError."""
    found = _DAY.fullmatch(text)
    if found is None:
        raise ValueError("not a day")
    year, month, day = map(int, found.groups())
    cycles, rest = divmod(year - _FIRST_YEAR, _CYCLE_YEARS)
    return (date(_FIRST_YEAR + rest, month, day) - _EPOCH).days + cycles * _CYCLE_DAYS
