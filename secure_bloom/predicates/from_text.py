"""Parse a predicate from the text that `--where` takes.

    email = 'a@x' and (country in ('it', 'no') or not score is null) and born >= 2000-01-01

Names are written without quotes or in double quotes, texts in single quotes (doubled inside).
Numbers, times, true and false are written without quotes. Any other word in the place of a value is
an error.  AND binds closer than OR.  These forms of SQL are accepted, because they need no
computation on rows: BETWEEN, typed constants (:mod:`.constants`), a value before the operator, a
boolean column alone, and IS TRUE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta

from secure_bloom.errors import PolicyError
from secure_bloom.parquet.texts import exact_number
from secure_bloom.predicates.constants import (
    HINT,
    KNOWN_WORDS,
    LITERALS,
    NOW,
    TODAY,
    TYPES,
    Token,
    cast,
    duration,
    moved,
    present,
    show_place,
    tokens_of,
)
from secure_bloom.predicates.tree import (
    MAX_DEPTH,
    PATTERNS,
    AllOf,
    AnyOf,
    Numeral,
    Operator,
    Predicate,
    condition,
    negated,
    refuse_never_true,
)

_COMPARISONS = {"=", "==", "!=", "<>", "<", "<=", ">", ">="}
#: An operator, and the one that means the same with the sides exchanged.
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
#: What ends a boolean column that is a condition alone.
_ENDS = {"and", "or", ")"}
_SQL = "other SQL is answered by: secure-bloom sql \"select * from 'TABLE' where CONDITION\""
#: Conditions that say the same as functions of a column.
_INSTEAD = {
    **dict.fromkeys(("lower", "upper"), "in any case: COLUMN ilike 'text'"),
    **dict.fromkeys(
        ("starts_with", "startswith", "prefix", "left", "substr", "substring"),
        "by its beginning: COLUMN like 'beginning%'",
    ),
    **dict.fromkeys(
        ("year", "extract", "date_trunc", "to_date", "date"),
        "a range of time: COLUMN >= '2026-01-01' and COLUMN < '2027-01-01'",
    ),
    **dict.fromkeys(
        ("list_contains", "array_contains", "list_has", "any"),
        "a list has a value: COLUMN = 3",
    ),
    **dict.fromkeys(
        ("isnull", "is_null", "coalesce", "ifnull", "nvl"), "null too: COLUMN is null or COLUMN = 3"
    ),
}
#: Hints for what SQL has after a condition.
_AFTER = {
    "limit": "the number of rows is no part of the condition: --limit N, in Python limit=N",
    "order": "rows are not sorted: leave order by out",
    "group": _SQL,
    ",": "conditions are joined by and, or by or",
    **dict.fromkeys(("&&", "&", "||", "|"), "write and, or, not in place of signs"),
}
#: What is no name of a column, and begins a condition that was copied from elsewhere.
_BEFORE = {
    "where": "leave the word where out",
    "select": "this is a query: secure-bloom sql QUERY, in Python sb.sql(QUERY)",
}
_OPERATORS = f"operators are = != < <= > >= between, in, like, ilike, is null, with not; {_SQL}"
#: Values that need no quotes: they read as nothing else in any type.
_UNQUOTED = re.compile(
    r"""(?:true|false|[+-]?(?:inf|infinity|nan))
    |[+-]?[0-9]+(?:-[0-9]+){2}(?:T[0-9:.]+(?:Z|[+-][0-9:.]+)?)?  # a date, a timestamp
    |[0-9]+:[0-9:.]+(?:Z|[+-][0-9:.]+)?                          # a time of the day
    |[+-]?P(?=[T0-9])[0-9.,DTHMSWY-]+                           # a duration
    |[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}                # a UUID
    |hex:[0-9a-f]*""",
    re.VERBOSE | re.IGNORECASE,
)
#: What a column may be called without quotes.
_NAME, _DIGIT = re.compile(r"[^\W\d][\w.]*$"), re.compile(r"[+-]?\.?\d")
_NO_COLUMNS = "columns are not compared with each other"
_NUMBERS = "a number is written as 12, -1.5 or 2e-3"
_BARE = "write a text in single quotes: email = 'a@example.com'"
_VALUES = {
    "name": f"write texts in single quotes, names of columns in double quotes; {_NO_COLUMNS}",
    "null": "nothing equals null: write is null or is not null",
}
#: Parameters begin with these, here and in other languages.  Taken as texts, they would match no
#: row.
_PLACEHOLDERS = (":", "?", "$", "%", "@")
#: A parameter is written as in SQLite, or as in DuckDB.
_PARAMETER = (":", "$")
_NO_PARAMETERS = (
    "write a text in single quotes; values come from --parameters FILE,"
    ' in Python from a structure: [("email", "=", value)]'
)


def from_text(text: str, parameters: Mapping[str, object] | None = None) -> Predicate:
    """Return the predicate in a text.

    Raises PolicyError, which quotes no value, for an invalid text.  With ``parameters``, ``:name``
    or ``$name`` in place of a value, or of a list with its brackets, means that parameter's value
    or list.
    """
    parser = None
    try:
        tokens = tokens_of(text)
        if not tokens:
            raise PolicyError("the condition is empty", hint="leave it out to read all rows")
        parser = _Parser(tokens, len(text) + 1, parameters)
        predicate = parser.disjunction(MAX_DEPTH)
        parser.expect_end()
    except PolicyError as error:
        show_place(error, text, parser.names if parser else frozenset())
        raise
    if not parser.has_negated_or:
        refuse_never_true(predicate)
    return predicate


def _is_number(text: str) -> bool:
    try:
        exact_number(text)
    except ValueError:
        return False
    return True


#: The name of a column, or the path to a member of it.
_Column = str | tuple[str, ...]


class _Parser:
    """A recursive-descent parser with one method for each rule of the grammar.

    ``is_negated`` says whether an odd number of NOTs is around the rule. Conditions are built in
    negated form at once, so a chain of NOTs does not visit them again.
    """

    def __init__(
        self, tokens: list[Token], end: int, parameters: Mapping[str, object] | None
    ) -> None:
        self.has_negated_or = False
        #: The characters at which names of columns begin, as far as the text was parsed.
        self.names = set[int]()
        self._parameters = parameters
        self._tokens = tokens
        self._end = Token(kind="end", text="", place=end)
        self._position = 0

    def disjunction(self, depth: int, *, is_negated: bool = False) -> Predicate:
        """Parse ``conjunction (or conjunction)*``."""
        parts = [self._conjunction(depth, is_negated)]
        while self._accept("or"):
            parts.append(self._conjunction(depth, is_negated))
        # A negated OR has SQL's answer, also where it is no row: only what a person wrote as a
        # condition of its own is refused.
        self.has_negated_or |= is_negated and len(parts) > 1
        # De Morgan: a negated OR is the AND of its negated parts, and the other way round.
        join = AllOf if is_negated else AnyOf
        return parts[0] if len(parts) == 1 else join(parts=tuple(parts))

    def expect_end(self) -> None:
        """Raise PolicyError if any text is left."""
        if self._next.kind != "end":
            hint = _AFTER.get(self._next.text.lower().strip(), HINT)
            raise self._wanted("and, or, or the end", hint=hint)

    def _conjunction(self, depth: int, is_negated: bool) -> Predicate:
        parts = [self._factor(depth, is_negated)]
        while self._accept("and"):
            parts.append(self._factor(depth, is_negated))
        join = AnyOf if is_negated else AllOf
        return parts[0] if len(parts) == 1 else join(parts=tuple(parts))

    def _factor(self, depth: int, is_negated: bool) -> Predicate:
        if depth == 0:
            raise PolicyError(f"the condition nests deeper than {MAX_DEPTH} levels")
        if self._accept("not"):
            return self._factor(depth - 1, not is_negated)
        if self._accept("("):
            inner = self.disjunction(depth - 1, is_negated=is_negated)
            self._expect(")")
            return inner
        found = self._condition()
        return negated(found) if is_negated else found

    def _condition(self) -> Predicate:
        if self._is_value:
            return self._value_first()
        if self._follows("isnan", "("):
            column = self._name()
            self._expect(")")
            # Of all numbers NaN alone is not below infinity or equal to it.
            return condition(column, Operator.NOT_LESS_OR_EQUAL, math.inf)
        column = self._name()
        if self._accept("is"):
            return self._test(column)
        is_negated = self._accept("not")
        if not is_negated and self._next.keyword in _COMPARISONS:
            return condition(column, self._take().text, self._value())
        if self._accept("in"):
            operator = Operator.NOT_IN if is_negated else Operator.IN
            return condition(column, operator, self._list())
        if self._next.keyword in PATTERNS:
            found = PATTERNS[self._take().text.lower()](column, self._value())
        elif self._accept("between"):
            found = self._between(column)
        elif not is_negated and (self._next.kind == "end" or self._next.keyword in _ENDS):
            return condition(column, Operator.EQUAL, True)
        else:
            word = self._tokens[self._position - 1].text.lower()
            raise self._wanted(
                "in, like, ilike or between" if is_negated else "an operator",
                _BEFORE.get(word, _OPERATORS),
            )
        return negated(found) if is_negated else found

    def _value_first(self) -> Predicate:
        """Parse ``value operator column``."""
        value = self._value()
        if self._next.keyword not in _COMPARISONS:
            raise self._wanted("an operator", _OPERATORS)
        operator = self._take().text
        return condition(self._name(), _MIRRORED.get(operator, operator), value)

    def _between(self, column: _Column) -> Predicate:
        least = condition(column, Operator.GREATER_OR_EQUAL, self._value())
        if self._next.keyword != "and":
            raise self._wanted("and", "write it as: id between 3 and 4")
        self._take()
        return AllOf(parts=(least, condition(column, Operator.LESS_OR_EQUAL, self._value())))

    def _test(self, column: _Column) -> Predicate:
        """Parse what follows ``is``: a test that is true or false, also for null."""
        is_negated = self._accept("not")
        word = self._take().text.lower()
        if word in ("null", "unknown"):
            return condition(column, Operator.IS_NOT_NULL if is_negated else Operator.IS_NULL, None)
        if word not in ("true", "false"):
            self._position -= 1
            raise self._wanted("null, true or false", _OPERATORS)
        parts = (
            condition(column, Operator.EQUAL, word == "true"),
            condition(column, Operator.IS_NOT_NULL, None),
        )
        found = AllOf(parts=parts)
        return negated(found) if is_negated else found

    def _list(self) -> list[object]:
        if self._is_parameter:
            given = self._parameter()
            return given if isinstance(given, list) else [given]
        self._expect("(")
        if self._next.kind == "word" and self._next.text.lower() == "select":
            raise PolicyError(
                f"the condition has a query at character {self._next.place}", hint=_SQL
            )
        values: list[object] = []
        while not values or self._accept(","):
            name = self._next.text
            values.append(self._member())
            if isinstance(values[-1], list):
                raise PolicyError(
                    f"the value of {name} is a list, and it is in brackets",
                    hint=f"write the list without brackets: in {name}",
                )
        self._expect(")")
        return values

    def _member(self) -> object:
        return None if self._accept("null") else self._value()

    def _name(self) -> _Column:
        """Parse a name, or a path whose members are quoted one by one: ``"address"."zip"``."""
        parts = [self._part()]
        while parts[-1].text.endswith(".") or (
            self._next.kind == "word" and self._next.text.startswith(".")
        ):
            parts.append(self._part())
        if self._next.keyword == "(":
            raise _function(parts[-1])
        if len(parts) == 1:
            return parts[0].text
        words = [[it.text] if it.kind == "name" else it.text.strip(".").split(".") for it in parts]
        return tuple(word for part in words for word in part if word)

    def _part(self) -> Token:
        if self._next.kind not in ("name", "word") or self._next.keyword:
            raise self._wanted("the name of a column")
        token = self._take()
        follows = self._tokens[self._position : self._position + 1]
        if token.kind == "word" and any(it.keyword not in ("", ",", ")") for it in follows):
            # Alone, or before another word, it may have been meant as a value.
            self.names.add(token.place)
        return token

    def _value(self) -> object:
        """Parse a constant, with casts after it, and with intervals added to it."""
        value = self._constant()
        while True:
            if self._accept("::"):
                value = self._cast(value, self._type())
            elif self._next.kind == "word" and self._next.text in ("+", "-"):
                value = self._moved(value, back=self._take().text == "-")
            else:
                return value

    def _moved(self, value: object, *, back: bool) -> object:
        place = self._next.place
        if self._next.text.lower() != "interval":
            raise self._wanted("interval", "such as: current_date - interval '7 days'")
        self._take()
        try:
            return moved(value, self._interval(), back=back)
        except (ValueError, OverflowError):
            raise PolicyError(
                f"no interval can be added at character {place}",
                hint="such as: current_date - interval '7 days', without parts of months or years",
            ) from None

    def _interval(self) -> str:
        """Parse what follows ``interval``: ``'7 days'`` or ``'7' day``."""
        amount = self._take().text
        if self._next.kind == "word" and not self._next.keyword:
            if "." in amount:
                # In SQL the number loses its fraction, which nobody wants.
                raise PolicyError(
                    f"a fraction and its unit apart at character {self._next.place}",
                    hint="write the unit into the quotes, such as: interval '1.5 days'",
                )
            amount = f"{amount} {self._take().text}"
        return amount

    def _duration(self, place: int) -> timedelta:
        try:
            return duration(self._interval())
        except (ValueError, OverflowError):
            raise PolicyError(
                f"no interval of weeks, days, hours, minutes or seconds at character {place}",
                hint="such as: interval '2 days 1 hour'",
            ) from None

    def _type(self) -> str:
        """Parse the name of a type. Digits in brackets after it are ignored."""
        token = self._take()
        if token.text.lower() not in TYPES:
            raise PolicyError(
                f"the type at character {token.place} is not one that constants are cast to",
                hint=f"types are {', '.join(TYPES)}; {_SQL}",
            )
        if self._accept("("):
            while not self._accept(")"):
                if self._take().kind == "end":
                    raise self._wanted(")")
        return token.text.lower()

    def _cast(self, value: object, kind: str) -> object:
        try:
            return cast(value, kind)
        except ValueError:
            place = self._tokens[self._position - 1].place
            raise PolicyError(
                f"the value before character {place} is not of the type {kind}"
            ) from None

    @property
    def _is_value(self) -> bool:
        """Whether a condition begins with its value: ``4711 = id``."""
        token = self._next
        if token.kind == "text" or self._is_parameter:
            return True
        after = self._tokens[self._position + 1 : self._position + 2]
        follows = after[0] if after else self._end
        if token.kind != "word" or token.keyword:
            return False
        word = token.text.lower()
        if word in LITERALS | {"interval"}:
            return follows.kind == "text"
        if word in (NOW | TODAY | {"cast"}) and follows.keyword == "(":
            return True
        return follows.keyword in _COMPARISONS and bool(
            _is_number(token.text) or _UNQUOTED.fullmatch(token.text)
        )

    def _follows(self, word: str, sign: str) -> bool:
        """Accept a word and the sign after it. Return False, and accept nothing, if they differ."""
        pair = self._tokens[self._position : self._position + 2]
        found = [it.text.lower() for it in pair] == [word, sign]
        found = found and pair[0].kind == "word"
        self._position += 2 * found
        return found

    def _constant(self) -> object:
        if self._is_parameter:
            return self._parameter()
        token = self._next
        word = token.text.lower() if token.kind == "word" else ""
        if word in NOW | TODAY:
            self._take()
            if self._accept("("):
                self._expect(")")
            return present(word)
        if self._follows("cast", "("):
            return self._cast_call()
        if word in LITERALS | {"interval"}:
            place = self._take().place
            if self._next.kind == "text" and word == "interval":
                return self._duration(place)
            if self._next.kind == "text":
                return self._cast(self._take().text, word)
            self._position -= 1
        if self._next.kind not in ("text", "word") or self._next.keyword:
            raise self._wanted(
                "a value", hint=_VALUES.get(self._next.keyword or self._next.kind, HINT)
            )
        token = self._take()
        if token.kind == "word" and self._accept("("):
            raise _function(token)
        return token.text if token.kind == "text" else _unquoted(token)

    def _cast_call(self) -> object:
        """Parse what follows ``cast(``."""
        if self._next.kind == "name" or self._names_a_column:
            place = self._next.place
            raise PolicyError(f"the condition casts a column at character {place}", hint=_SQL)
        value = self._value()
        if self._take().text.lower() != "as":
            self._position -= 1
            raise self._wanted("as", "such as: cast('2026-01-31' as date)")
        value = self._cast(value, self._type())
        self._expect(")")
        return value

    @property
    def _names_a_column(self) -> bool:
        """Whether the next word is no value, but may be the name of a column."""
        token = self._next
        is_value = _UNQUOTED.fullmatch(token.text) or token.text.lower() in KNOWN_WORDS
        return token.kind == "word" and not is_value and bool(_NAME.match(token.text))

    @property
    def _is_parameter(self) -> bool:
        is_word = self._parameters is not None and self._next.kind == "word"
        return is_word and self._next.text.startswith(_PARAMETER)

    def _parameter(self) -> object:
        token = self._take()
        values = self._parameters or {}
        if token.text[1:] not in values:
            raise _without_a_value(token, hint=f"there are {', '.join(values) or 'none'}")
        return values[token.text[1:]]

    @property
    def _next(self) -> Token:
        more = self._position < len(self._tokens)
        return self._tokens[self._position] if more else self._end

    def _take(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _accept(self, keyword: str) -> bool:
        found = self._next.keyword == keyword
        self._position += found
        return found

    def _expect(self, keyword: str) -> None:
        if not self._accept(keyword):
            raise self._wanted(keyword)

    def _wanted(self, what: str, hint: str = HINT) -> PolicyError:
        # Name the place, not the text there: it may be a value.
        return PolicyError(f"the condition needs {what} at character {self._next.place}", hint=hint)


def _function(token: Token) -> PolicyError:
    """Return an error about a function, whose name ``token`` is."""
    instead = _INSTEAD.get(token.text.lower(), "functions are not taken")
    return PolicyError(
        f"the condition has a function at character {token.place}", hint=f"{instead}; {_SQL}"
    )


def _unquoted(token: Token) -> str:
    """Return the value of a word. Raises PolicyError if it could as well be a text or a column."""
    if token.text.startswith(_PLACEHOLDERS):
        raise _without_a_value(token, hint=_NO_PARAMETERS)
    if _is_number(token.text):
        return Numeral(token.text)
    if _UNQUOTED.fullmatch(token.text):
        return token.text
    # The word is not shown: it may be a value.
    ways = [(_NAME, f"{_BARE}; {_NO_COLUMNS}"), (_DIGIT, f"{_NUMBERS}; {_BARE}")]
    hint = next((hint for way, hint in ways if way.match(token.text)), _BARE)
    raise PolicyError(f"the value at character {token.place} is not in quotes", hint=hint)


def _without_a_value(token: Token, *, hint: str) -> PolicyError:
    message = f"no value is given for the parameter at character {token.place}"
    return PolicyError(message, hint=hint)
