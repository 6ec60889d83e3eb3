"""The one rule of likeness: which columns are taken for a sensitive column of a policy.

    same_column    what an engine takes for the column: other capitals, other names of list levels
    is_named       a name that people take for it: marks, accents, look-alike letters, no width
    lookalikes     also plurals, swapped letters, a copy inside another column, a similar name

``add``, ``reencrypt``, the writers of Hudi and Paimon, ``policy check`` and the audit ask here, so
what one of them refuses the other reports.  A column that a rule of the policy names by its exact
path is that rule's column, and is like no other.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import difflib

#: Names of the repeated level of a list, and of its element (LogicalTypes.md, Lists; older forms).
_ELEMENTS = {"item", "element", "array", "array_element"}
#: Levels of lists and maps that no engine shows as a name.
_ONLY_PARQUET = {"list", "bag", "key_value", "entries", "map"}
#: Parquet's level of a map, and the spellings of its two parts.
_MAPS, _MAP_PARTS = {"key_value", "entries", "map"}, {"keys": "key", "values": "value"}
#: The most levels of a path of which all runs are compared.
_MOST_LEVELS = 12
#: What a list or a map calls its parts.
_PARTS = {"element", "key", "value"}
#: Two names are alike from this ratio of difflib on; shorter and longer names are not compared.
_ALIKE, _SHORTEST, _LONGEST = 0.8, 5, 100
#: From this length on a name may have two letters swapped, or an "s" more at its end.
_SHORTEST_TYPO = 4

#: The most columns of which the answer is kept. Names are as long as a file makes them.
_MOST_KEPT = 512

#: The parts of the name of a column, or of a structure.
Path = tuple[str, ...]


def column_levels(path: Sequence[str]) -> Path:
    """Return the path without Parquet's own levels, for comparing it with other schemas."""
    levels, before = [path[0]], path[0].casefold()
    for part in path[1:]:
        folded = part.casefold()
        if folded in _ELEMENTS or folded == f"{before}_tuple":
            levels.append("element")
        elif folded not in _ONLY_PARQUET:
            levels.append(_MAP_PARTS.get(folded, part) if before in _MAPS else part)
        before = folded
    return tuple(levels)


def plain_name(path: Sequence[str]) -> str:
    """Return a form of a column's name that ignores case, marks and the alphabet of its letters."""
    return _plain(column_levels(path))


class Likeness:
    """The names of a policy's columns, for comparison with those of files. Picklable.

    ``rules`` are the dotted paths of all rules. ``secrets`` are the paths of the rules with a key.
    """

    def __init__(self, rules: Iterable[str], secrets: Iterable[str]) -> None:
        self._rules = frozenset(rules)
        self._secrets = {path: tuple(path.split(".")) for path in secrets}
        self._same: dict[Path, str] = {}
        self._plain: dict[str, str] = {}
        self._typos: dict[str, str] = {}
        for name, path in self._secrets.items():
            self._same.setdefault(_engine_name(path), name)
            plain = plain_name(path)
            self._plain.setdefault(plain, name)
            for typo in _typos(plain):
                self._typos.setdefault(typo, name)
        # The files of a table have the same columns.
        self._inside = functools.lru_cache(maxsize=_MOST_KEPT)(self._within)

    def __reduce__(self) -> tuple[type[Likeness], tuple[frozenset[str], tuple[str, ...]]]:
        # Made anew from the names: the tables are many times larger, and follow from them.
        return Likeness, (self._rules, tuple(self._secrets))

    def same_column(self, path: Sequence[str]) -> str | None:
        """Return the sensitive column that an engine takes for this one or its parent, or None.

        Spark ignores case, and each engine finds the elements of a list whatever their level is
        called.
        """
        if not self._same or ".".join(path) in self._rules:
            return None
        name = _engine_name(path)
        return next(
            (found for end in range(len(name), 0, -1) if (found := self._same.get(name[:end]))),
            None,
        )

    def is_named(self, path: Sequence[str]) -> str | None:
        """Return the sensitive column that this name means, in whatever spelling, or None."""
        if ".".join(path) in self._rules:
            return None
        levels = column_levels(path)
        names = (name for end in range(len(levels), 0, -1) for name in _spellings(levels[:end]))
        found = next((self._plain[name] for name in names if name in self._plain), None)
        # Some letters look like another one in capitals than in small, such as those of Greek.
        return found or self.same_column(path)

    def lookalikes(self, paths: Iterable[Path], present: Collection[Path]) -> dict[Path, str]:
        """Map each column in ``paths`` that is like a sensitive column to that sensitive column.

        ``present`` are all columns of the file. A similar name counts only for a sensitive column
        that the file lacks.
        """
        candidates = [path for path in paths if ".".join(path) not in self._rules]
        if not candidates or not self._secrets:
            return {}
        found = {path: name for path in candidates if (name := self._inside(path)) is not None}
        similar = self._similar([path for path in candidates if path not in found], present)
        return found | similar

    def _within(self, path: Path) -> str | None:
        """Return the sensitive column that consecutive levels name, such as before.email."""
        runs = list(_runs(path))
        return (
            next((self._plain[run] for run in runs if run in self._plain), None)
            or self.same_column(path)
            or next(
                (
                    self._typos[run]
                    for run in runs
                    if run in self._typos and not _differ_by_number(path, self._typos[run])
                ),
                None,
            )
        )

    def _similar(self, paths: Sequence[Path], present: Collection[Path]) -> dict[Path, str]:
        known = {path[:end] for path in present for end in range(1, len(path) + 1)}
        absent: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        for name, secret in self._secrets.items():
            if secret not in known:
                absent[len(secret)].append((name, plain_name(secret)))
        found: dict[Path, str] = {}
        for depth, secrets in absent.items():
            plain = {path: plain_name(path[:depth]) for path in paths}
            for name, secret_name in secrets:
                similar = _similar_to(secret_name, set(plain.values()))
                found |= {path: name for path, it in plain.items() if it in similar}
        return found


def _engine_name(path: Sequence[str]) -> Path:
    levels = column_levels(path)
    folded = (part.casefold() for part in levels[1:] if part != "element")
    return (levels[0].casefold(), *folded)


def _runs(path: Sequence[str]) -> Iterator[str]:
    """Yield the plain names of all sequences of levels in a path, such as ``before.email``."""
    levels = column_levels(path)[:_MOST_LEVELS]
    for start, first in enumerate(levels):
        # What a list or a map calls its parts is no name of a column.
        if start == 0 or first not in _PARTS:
            for end in range(start + 1, len(levels) + 1):
                yield from _spellings(levels[start:end])


def _spellings(levels: Sequence[str]) -> Iterator[str]:
    """Yield the plain form of a name, and other plain forms as which people may read the name."""
    yield _plain(levels)
    for read in _READINGS:
        other = list(map(read, levels))
        if other != list(levels):
            yield _plain(other)


def _i_as_l(part: str) -> str:
    # A name in capitals has no small letter that the I could be taken for.
    return part if part.isupper() else part.replace("I", "l")


def _strokes_as_i(part: str) -> str:
    # A stroke of another alphabet looks like a small l, and like a capital I.
    return part if part.isascii() else part.translate(_STROKES)


def _from_right_to_left(part: str) -> str:
    return part[::-1] if _OVERRIDE in part else part


def _rn_as_m(part: str) -> str:
    return part.replace("rn", "m")


_READINGS = (_i_as_l, _strokes_as_i, _from_right_to_left, _rn_as_m)
#: Those of CONFUSABLES that are a stroke, and not a capital L.
_STROKES = dict.fromkeys(
    map(
        ord,
        "\u0196\u01c0\u0399\u0406\u04c0\u16c1\u2c92\u2d4f\ua4f2\U0001028a\U00010309\U00010320"
        "\U00016f28\U0001d6b0\U0001d6ea\U0001d724\U0001d75e\U0001d798",
    ),
    "i",
)
#: RIGHT-TO-LEFT OVERRIDE: what follows is shown backwards.
_OVERRIDE = "\u202e"


def _plain(levels: Sequence[str]) -> str:
    # Without the dots: a structure may be flattened into names such as customer_email.
    return "".join(
        _plain_part(part) for i, part in enumerate(levels) if i == 0 or part != "element"
    )


@functools.lru_cache(maxsize=4096)
def _plain_part(part: str) -> str:
    # Before NFKD too: it takes letters apart that look alike as a whole.
    letters = unicodedata.normalize("NFKD", part.translate(CONFUSABLES))
    letters = unicodedata.normalize("NFKD", letters.casefold()).translate(CONFUSABLES)
    if not letters.isascii():
        letters = "".join(map(_basic_letter, letters))
    # Letters of no width are none, and a name of marks alone is itself: without them all such names
    # would be one.
    return "".join(filter(_is_seen, letters)) or part


def _is_seen(letter: str) -> bool:
    return letter.isalnum() and letter not in _FILLERS


def _basic_letter(letter: str) -> str:
    """Return a Latin letter without its stroke, or the letter of a small capital or a symbol."""
    # Marks and tags have such names too, and are no letters.
    if unicodedata.category(letter)[0] not in "LS":
        return letter
    found = _BASIC.search(unicodedata.name(letter, ""))
    return letter if found is None else found[1].lower()


_BASIC = re.compile(
    r"(?:LATIN|INDICATOR SYMBOL)(?: SMALL| CAPITAL)? LETTER (?:SMALL CAPITAL )?([A-Z])"
    r"(?: WITH .*)?$"
)
#: Letters, to Unicode, that show as nothing (Default_Ignorable_Code_Point of category Lo).
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")


def _typos(name: str) -> Iterator[str]:
    """Yield the names that differ by two swapped letters, or by an "s" at the end."""
    if not _SHORTEST_TYPO <= len(name) <= _LONGEST:
        return
    yield f"{name}s"
    if name.endswith("s") and len(name) > _SHORTEST_TYPO:
        yield name[:-1]
    for at in range(len(name) - 1):
        if name[at] != name[at + 1]:
            yield f"{name[:at]}{name[at + 1]}{name[at]}{name[at + 2 :]}"


def _differ_by_number(path: Path, name: str) -> bool:
    """Return whether a column or its parent differs only by its number, as x101 differs from x110.

    These are two columns of a series, and no more alike than x101 and x102.
    """
    start = ".".join(path[: name.count(".") + 1])
    first, second = (re.sub(r"\d+", "0", it.casefold()) for it in (start, name))
    return first == second


def _similar_to(name: str, others: Iterable[str]) -> set[str]:
    if not _SHORTEST <= len(name) <= _LONGEST:
        return set()
    import difflib

    # The matcher remembers the letters of its second text, and is asked for each first one.
    matcher = difflib.SequenceMatcher(b=name, autojunk=False)
    return {other for other in others if _is_similar(matcher, other)}


def _is_similar(matcher: difflib.SequenceMatcher[str], other: str) -> bool:
    if not _SHORTEST <= len(other) <= _LONGEST:
        return False
    matcher.set_seq1(other)
    # The first two ratios are quick upper bounds of the third.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= _ALIKE for ratio in ratios)


#: A letter -> the letters of other alphabets that look like it: the confusables of Unicode TR 39,
#: without those that NFKD and case folding already turn into the Latin letter.  The digits 0 and 1
#: count as o and l, because they look like them.
_LOOK_ALIKES: Final = {
    "2": "\u01a7\u03e8\u14bf\ua644\ua6ef\ua75a",
    "3": "\u01b7\u021c\u0417\u04e0\u2ccc\ua76a\ua7ab\U000118ca\U00016f3b",
    "4": "\u13ce\U000118af",
    "5": "\u01bc\U000118bb",
    "6": "\u0431\u13ee\u2cd2\U000118d5",
    "7": "\U000104d2\U000118c6",
    "8": "\u0222\u0223\u09ea\u0a6a\U0001031a",
    "9": "\u09ed\u0a67\u0b68\u0d6d\u2cca\ua76e\U000118ac\U000118cc\U000118d6",
    "a": (
        "\u0251\u0391\u03b1\u0410\u0430\u13aa\u15c5\ua4ee\U000102a0\U00016f40\U0001d6a8"
        "\U0001d6c2\U0001d6e2\U0001d6fc\U0001d71c\U0001d736\U0001d756\U0001d770\U0001d790"
        "\U0001d7aa"
    ),
    "b": (
        "\u0184\u0392\u03b2\u0412\u042c\u0432\u13cf\u13f4\u1472\u15af\u15f7\ua4d0\ua7b4"
        "\U00010282\U000102a1\U00010301\U0001d6a9\U0001d6e3\U0001d71d\U0001d757\U0001d791"
    ),
    "c": (
        "\u03f2\u03f9\u0421\u0441\u13df\u1d04\u2ca4\u2ca5\ua4da\uabaf\U000102a2\U00010302"
        "\U00010415\U0001043d\U0001051c\U000118e9\U000118f2"
    ),
    "d": "\u0501\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3",
    "e": (
        "\u0395\u0415\u0435\u04bd\u13ac\u2d39\ua4f0\uab32\U00010286\U000118a6\U000118ae"
        "\U0001d6ac\U0001d6e6\U0001d720\U0001d75a\U0001d794"
    ),
    "f": (
        "\u03dc\u0584\u15b4\u1e9d\ua4dd\ua798\ua799\uab35\U00010287\U000102a5\U00010525"
        "\U000118a2\U000118c2\U0001d7ca"
    ),
    "g": "\u018d\u0261\u050c\u0581\u13c0\u13f3\u1d83\ua4d6",
    "h": (
        "\u0397\u041d\u043d\u04bb\u0570\u13bb\u13c2\u157c\u2c8e\ua4e7\U000102cf\U0001d6ae"
        "\U0001d6e8\U0001d722\U0001d75c\U0001d796"
    ),
    "i": (
        "\u0131\u0269\u026a\u037a\u03b9\u0456\u04cf\u13a5\u1fbe\ua647\uab75\U000118c3"
        "\U0001d6a4\U0001d6ca\U0001d704\U0001d73e\U0001d778\U0001d7b2"
    ),
    "j": "\u037f\u03f3\u0408\u0458\u13ab\u148d\ua4d9\ua7b2",
    "k": (
        "\u039a\u03ba\u041a\u043a\u13e6\u16d5\u2c94\ua4d7\U00010518\U0001d6b1\U0001d6eb"
        "\U0001d725\U0001d75f\U0001d799"
    ),
    "l": (
        "|\u0196\u01c0\u0399\u0406\u04c0\u06f1\u13de\u14aa\u16c1\u2c92\u2cd0\u2d4f\ua4e1\ua4f2"
        "\U0001028a\U00010309\U00010320\U0001041b\U00010526\U000118a3\U000118b2\U00016f16"
        "\U00016f28\U0001d6b0\U0001d6ea\U0001d724\U0001d75e\U0001d798"
    ),
    "m": (
        "\u039c\u03fa\u041c\u043c\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311\U0001d6b3"
        "\U0001d6ed\U0001d727\U0001d761\U0001d79b"
    ),
    "n": (
        "\u039d\u0578\u057c\u2c9a\ua4e0\U00010513\U0001d6b4\U0001d6ee\U0001d728\U0001d762\U0001d79c"
    ),
    "o": (
        "\u039f\u03bf\u03c3\u041e\u043e\u0555\u0585\u06f5\u0966\u09e6\u0a66\u0ae6\u0b20\u0b66"
        "\u0be6\u0c66\u0ce6\u0d20\u0d66\u0e50\u0ed0\u101d\u1040\u10ff\u12d0\u1d0f\u1d11\u2c9e"
        "\u2c9f\u2d54\u3007\ua4f3\uab3d\U00010292\U000102ab\U00010404\U0001042c\U000104c2"
        "\U000104ea\U00010516\U000114d0\U000118b5\U000118c8\U000118d7\U000118e0\U0001d6b6"
        "\U0001d6d0\U0001d6d4\U0001d6f0\U0001d70a\U0001d70e\U0001d72a\U0001d744\U0001d748"
        "\U0001d764\U0001d77e\U0001d782\U0001d79e\U0001d7b8\U0001d7bc"
    ),
    "p": (
        "\u03a1\u03c1\u03f1\u0420\u0440\u13e2\u146d\u2ca2\u2ca3\ua4d1\U00010295\U0001d6b8"
        "\U0001d6d2\U0001d6e0\U0001d6f2\U0001d70c\U0001d71a\U0001d72c\U0001d746\U0001d754"
        "\U0001d766\U0001d780\U0001d78e\U0001d7a0\U0001d7ba\U0001d7c8"
    ),
    "q": "\u051b\u0563\u0566\u2d55",
    "r": ("\u01a6\u0433\u13a1\u13d2\u1587\u1d26\u2c85\ua4e3\uab47\uab48\uab81\U000104b4\U00016f35"),
    "s": (
        "\u01bd\u0405\u0455\u054f\u13d5\u13da\ua4e2\ua731\uabaa\U00010296\U00010420\U00010448"
        "\U000118c1\U00016f3a"
    ),
    "t": (
        "\u03a4\u03c4\u0422\u0442\u13a2\u2ca6\ua4d4\U00010297\U000102b1\U00010315\U000118bc"
        "\U00016f0a\U0001d6bb\U0001d6f5\U0001d72f\U0001d769\U0001d7a3"
    ),
    "u": (
        "\u028b\u03c5\u054d\u057d\u1200\u144c\u1d1c\ua4f4\ua79f\uab4e\uab52\U000104ce"
        "\U000104f6\U000118b8\U000118d8\U00016f42\U0001d6d6\U0001d710\U0001d74a\U0001d784"
        "\U0001d7be"
    ),
    "v": (
        "\u03bd\u0474\u0475\u06f7\u13d9\u142f\u1d20\u2d38\ua4e6\ua6df\uaba9\U0001051d"
        "\U00011706\U000118a0\U000118c0\U00016f08\U0001d6ce\U0001d708\U0001d742\U0001d77c"
        "\U0001d7b6"
    ),
    "w": (
        "\u026f\u0461\u051c\u051d\u0561\u13b3\u13d4\u1d21\ua4ea\uab83\U0001170a\U0001170e"
        "\U0001170f\U000118e6\U000118ef"
    ),
    "x": (
        "\u03a7\u03c7\u0425\u0445\u1541\u157d\u16b7\u2cac\u2d5d\ua4eb\ua7b3\U00010290"
        "\U000102b4\U00010317\U00010322\U00010527\U000118ec\U0001d6be\U0001d6f8\U0001d732"
        "\U0001d76c\U0001d7a6"
    ),
    "y": (
        "\u0263\u028f\u03a5\u03b3\u03d2\u0423\u0443\u04ae\u04af\u10e7\u13a9\u13bd\u1d8c\u1eff"
        "\u213d\u2ca8\ua4ec\uab5a\U000102b2\U000118a4\U000118dc\U00016f43\U0001d6bc\U0001d6c4"
        "\U0001d6f6\U0001d6fe\U0001d730\U0001d738\U0001d76a\U0001d772\U0001d7a4\U0001d7ac"
    ),
    "z": (
        "\u0396\u03b6\u13c3\u1d22\ua4dc\uab93\U000102f5\U000118a9\U000118c4\U000118e5"
        "\U0001d6ad\U0001d6e7\U0001d721\U0001d75b\U0001d795"
    ),
}
#: Letters of any alphabet and case -> the small Latin letter or the digit, for ``str.translate``.
CONFUSABLES: Final[dict[int, str]] = {
    ord(letter): latin for latin, letters in _LOOK_ALIKES.items() for letter in letters
} | {ord("0"): "o", ord("1"): "l"}
