"""Split the text of a condition into tokens, and show in an error where the text is wrong.

A token is a text in single quotes, a name in double quotes, a sign, or a word.  Errors count
characters from 1, and quote nothing that may be a value.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.constants import LITERALS, NOW, TODAY

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
