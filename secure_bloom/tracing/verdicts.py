"""How many words of a column in a file, or in a part of it, are a finding.

A text may contain a word of a column by chance, so a word counts by how distinctive it is
(:mod:`.index`):

- a distinctive word, such as an address or an account: three of them, or one in a short text;
- an address of a domain that documents use (example.com): more of them, or one in a shorter text;
- a rare word, such as a name of two parts or a number of eight digits: five in a short text;
- a common word, such as a city, a date or a short number: a large share of all values;
- a day of the epoch, as a number: the same, in a text that has little else.

In a column of a file, four in five distinct values must be values of the searched column, of
whatever kind.  Fewer distinctive words are a mention, which is reported and is no finding.  The
limits were measured on a lake of clean files (tests/tracing/test_clean_lakes.py).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from secure_bloom.tracing.column_words import COMMON, DISTINCTIVE, EXAMPLE, RARE, SERIAL


class Meaning(enum.StrEnum):
    """The conclusion from words of a column in a part of a file."""

    VALUES = "values"
    MENTION = "mention"
    NOTHING = "nothing"


#: Kind of words -> how many are a finding in any text, and in one of at most these bytes for each.
_ENOUGH = {DISTINCTIVE: (3, 1, 3_000), EXAMPLE: (5, 1, 1_000), RARE: (50, 3, 500)}
#: More rare words in a longer text.
_RARE_IN_LONGER = (5, 1_200)
#: The share of all values of a column, and the least number, that common words must be.
_COMMON_SHARE, _LEAST_COMMON = 0.3, 20
#: Days of the epoch count with at most these bytes for each.  Dates that are searched for are at
#: most a fifth of all, so a list of all numbers has more.
_ROOM_FOR_DAYS = 30
#: The same for a column of a file: the share of its own distinct values.
_COLUMN_SHARE, _LEAST_IN_COLUMN = 0.8, 10
#: Distinctive words that are all values of a column of a file, such as its bounds.
_LEAST_ALONE = 2


def verdict(
    counts: Mapping[int, int], size: int, values: int, distinct: int | None = None
) -> Meaning:
    """Return the meaning of distinct words in a text of ``size`` bytes.

    ``counts`` has them by kind.

    ``values`` is how many distinct values the searched column has. If the words are in a column of
    a file, ``distinct`` is how many distinct values that column has.
    """
    found = sum(counts.values())
    if distinct and found >= _LEAST_IN_COLUMN and found >= _COLUMN_SHARE * distinct:
        return Meaning.VALUES
    certain = counts.get(DISTINCTIVE, 0) + counts.get(EXAMPLE, 0)
    if distinct and certain >= _LEAST_ALONE and found >= distinct:
        return Meaning.VALUES
    for kind, (anywhere, least, room) in _ENOUGH.items():
        count = counts.get(kind, 0)
        if count >= anywhere or (count >= least and size <= room * count):
            return Meaning.VALUES
    rare, room = counts.get(RARE, 0), _RARE_IN_LONGER[1]
    if rare >= _RARE_IN_LONGER[0] and size <= room * rare:
        return Meaning.VALUES
    days = counts.get(SERIAL, 0)
    common = counts.get(COMMON, 0) + rare + (days if size <= _ROOM_FOR_DAYS * days else 0)
    # A column of short numbers has no values that count, and other notations of them.
    if values and common >= _LEAST_COMMON and common >= _COMMON_SHARE * values:
        return Meaning.VALUES
    return Meaning.MENTION if certain else Meaning.NOTHING
