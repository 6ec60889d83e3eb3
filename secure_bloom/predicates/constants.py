"""The tokens of a condition's text, and the constants of SQL in it.

A token is a text in single quotes, a name in double quotes, a sign, or a word.  Errors count
characters from 1, and quote nothing that may be a value.  Constants are typed literals, casts, and
times from now:

    date '2026-01-31'    timestamp '2026-01-31 10:00:00Z'    '42'::int    cast('1.5' as decimal)
    current_date - interval '7 days'    now() - interval '1' hour    interval '90 minutes'

A constant is computed when the condition is parsed.  Times from now are in UTC.  A date or time
that Python has no type for (nanoseconds, years from 10000 on) is a scalar of pyarrow.  Functions
that compute a constant raise ValueError, without the text, for a text that is not of the type.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from typing import Final

from secure_bloom.errors import PolicyError
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


_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*")
    |(?P<sign><=|>=|<>|!=|==|::|[=<>(),])|(?P<word>(?:(?!::)[^\s'"=<>!(),])+))""",
    re.VERBOSE,
)
_KEYWORDS = {"and", "or", "not", "in", "is", "null", "like", "ilike", "between"}
#: Words that are no values.
KNOWN_WORDS = _KEYWORDS | LITERALS | NOW | TODAY | {"cast", "as", "interval", "isnan"}
#: Quotes as word processors set them.
_TYPESET = frozenset("\u2018\u2019\u201c\u201d\u00b4`")
_UNREADABLE = "write texts in single quotes, one inside is doubled: name = 'O''Hara'"
HINT = "write it as: email = 'a@example.com' and country in ('it', 'no')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token: its kind, and its text without quotes. ``place`` counts characters from 1."""

    kind: str
    text: str
    place: int

    @property
    def keyword(self) -> str:
        """The lower-case keyword or sign, or an empty text for any other token."""
        lowered = self.text.lower()
        is_keyword = self.kind == "sign" or (self.kind == "word" and lowered in _KEYWORDS)
        return lowered if is_keyword else ""


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text. Raises PolicyError where no token can begin."""
    tokens, position = [], 0
    # Copied from a query, a condition ends as the query does.
    text = text.rstrip().removesuffix(";").rstrip()
    end = len(text)
    while position < end:
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            rest = text[position:].lstrip()
            raise PolicyError(
                f"the condition cannot be read from character {end - len(rest) + 1} on",
                hint="write not in place of !" if rest.startswith("!") else _UNREADABLE,
            )
        kind, part = found.lastgroup, found[found.lastgroup]
        if kind == "word" and not _TYPESET.isdisjoint(part):
            raise _typeset_quote(part, found.start(found.lastgroup) + 1)
        if kind in ("text", "name"):
            part = part[1:-1].replace(part[0] * 2, part[0])
        tokens.append(Token(kind=kind, text=part, place=found.start(found.lastgroup) + 1))
        position = found.end()
    return tokens


def _typeset_quote(word: str, place: int) -> PolicyError:
    # Spark and MySQL write names so.
    if "`" in word:
        hint = 'write names that need quotes in double quotes: "order id" = 1'
        return PolicyError(f"a backtick at character {place}", hint=hint)
    return PolicyError(f"a typographic quote at character {place}", hint=_UNREADABLE)


#: How errors say where they are.
_PLACE = re.compile(r"character (\d+)")
#: Characters of a condition that an error shows around its place.
_SHOWN = 60


def show_place(error: PolicyError, text: str, names: Set[int]) -> None:
    """Add to the hint of an error the condition with a caret at the place.

    What may be a value is shown as stars: all but signs, keywords, and the names of columns that
    begin at the characters ``names``.
    """
    found = _PLACE.search(error.message)
    if found is None or not text.strip():
        return
    place = min(int(found[1]) - 1, len(text))
    shown, end = list("*" * len(text)), 0
    for it in _TOKEN.finditer(text):
        start, end = it.span(it.lastgroup or 0)
        part = it[it.lastgroup or 0]
        if it.lastgroup == "sign" or part.lower() in KNOWN_WORDS or start + 1 in names:
            shown[start:end] = part
        elif it.lastgroup in ("text", "name"):
            shown[start] = shown[end - 1] = part[0]
    line = "".join(" " if char.isspace() else kept for char, kept in zip(text, shown, strict=True))
    if error.message.endswith("is not in quotes"):
        word = re.compile(r"\S+").match(line, place)
        end = word.end() if word else place
        line = f"{line[:place]}'{line[place:end]}'{line[end:]}"
    first = max(0, place - _SHOWN // 2)
    line = line[first : first + _SHOWN]
    error.hint = f"{error.hint or HINT}\n  {line}\n  {' ' * (place - first)}^"
