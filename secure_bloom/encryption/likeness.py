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
from typing import TYPE_CHECKING

from secure_bloom.encryption.confusables import CONFUSABLES

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
        """Return the sensitive column that a run of the levels names, such as before.email."""
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
    """Return whether a column or its parent differs only by its number, such as x101 from x110.

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
