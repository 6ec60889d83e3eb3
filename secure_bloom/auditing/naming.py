"""Recognize variants of names of columns and folders: case, marks or letters, a plural, a typo.

Spark ignores case in names of columns, so two names that differ only in case are one column.

:class:`PathMask` masks the values of sensitive columns in paths, because more people see a report
than the table: ``email=user1@example.com/x.parquet`` -> ``email=***1/x.parquet``.  Equal values get
equal numbers, in the order of the files.
"""

from __future__ import annotations

import difflib
import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import unquote

from secure_bloom.auditing.findings import Finding
from secure_bloom.encryption.policy import KeyPolicy

#: Names that writers give the two levels of a list (LogicalTypes.md, Lists).
_LEVELS = {"bag": "list", "item": "element", "array": "element", "array_element": "element"}
_ONLY_PARQUET = {"list", "bag", "key_value", "entries", "map"}
#: The most levels of a path of which all runs are compared.
_MOST_LEVELS = 12
#: What a list or a map calls its parts.
_PARTS = {"element", "key", "value"}
#: Two names are alike from this ratio of difflib on; shorter and longer names are not compared.
_ALIKE, _SHORTEST, _LONGEST = 0.8, 5, 100
#: From this length on a name may have two letters swapped, or an "s" more at its end.
_SHORTEST_TYPO = 4
#: Cyrillic and Greek letters that look like Latin ones (Unicode TR 39, confusables).
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u0131\u03b1\u03bf\u03c1\u03b9\u03bd\u03f2",
    "aeopcxyijshdqwiaopivc",
)


def are_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two paths of equal depth differ only as two spellings of a name do."""
    a, b = _plain(one), _plain(other)
    if a == b or is_typo(a, b):
        return True
    if not all(_SHORTEST <= len(name) <= _LONGEST for name in (a, b)):
        return False
    # The first two ratios are quick upper bounds of the third.
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=False)
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= _ALIKE for ratio in ratios)


def is_typo(one: str, other: str) -> bool:
    """Return whether two plain names differ by two swapped letters, or by an "s" at the end."""
    short_one, long_one = sorted((one, other), key=len)
    if len(short_one) < _SHORTEST_TYPO or len(long_one) > _LONGEST:
        return False
    if len(short_one) != len(long_one):
        return long_one == f"{short_one}s"
    differ = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(differ) != 2 or differ[1] != differ[0] + 1:
        return False
    first, second = differ
    return one[first] == other[second] and one[second] == other[first]


def names_within(path: Sequence[str]) -> Iterator[str]:
    """Yield the plain names of all sequences of levels in a path, such as ``before.email``."""
    levels = column_levels(path)[:_MOST_LEVELS]
    for start, first in enumerate(levels):
        # What a list or a map calls its parts is no name of a column.
        if start == 0 or first not in _PARTS:
            for end in range(start + 1, len(levels) + 1):
                yield _plain(levels[start:end])


def plain_name(path: Sequence[str]) -> str:
    """Return a form of a column's name that ignores case and marks."""
    return _plain(column_levels(path))


def secret_named(path: Sequence[str], policy: KeyPolicy) -> str | None:
    """Return the sensitive column that a path means, in whatever spelling.

    Return None for another column.
    """
    key = policy.own_key_for(tuple(path))
    if key is not None:
        return ".".join(path)
    wanted = plain_name(path)
    return next(
        (
            name
            for name, rule in policy.columns.items()
            if rule.key is not None and plain_name(name.split(".")) == wanted
        ),
        None,
    )


def column_levels(path: Sequence[str]) -> tuple[str, ...]:
    """Return the path without Parquet's own levels, for comparing it with other schemas."""
    return (path[0], *(_LEVELS.get(part, part) for part in path[1:] if part not in _ONLY_PARQUET))


def short(text: str) -> str:
    """Return a name from a file. If it is longer than any real name, its middle is left out."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 30]}…{text[-29:]}"


def _plain(path: Sequence[str]) -> str:
    # Without the dots: a structure may be flattened into names such as customer_email.
    return "".join(
        _plain_part(part if i == 0 else _LEVELS.get(part.lower(), part))
        for i, part in enumerate(path)
        if i == 0 or part != "element"
    )


@functools.lru_cache(maxsize=4096)
def _plain_part(part: str) -> str:
    letters = unicodedata.normalize("NFKD", part).casefold().translate(_LOOK_ALIKES)
    # A name of marks alone is itself: without them all such names would be one.
    return "".join(filter(str.isalnum, letters)) or part


def secret_partition(folder: str, policy: KeyPolicy) -> str | None:
    """Return the sensitive column whose value is in this folder's name, as the policy writes it."""
    name, equals, _ = folder.partition("=")
    if not equals:
        return None
    return secret_named((unquote(name),), policy)


class PathMask:
    """Masks paths. The same path is always masked in the same way."""

    def __init__(self, policy: KeyPolicy) -> None:
        self._policy = policy
        self._numbers: dict[str, int] = {}

    def path(self, path: str) -> str:
        """Return the path with a number for each value."""
        return "/".join(map(self._part, path.split("/"))) if "=" in path else path

    def finding(self, finding: Finding) -> Finding:
        """Return the finding with its path masked."""
        if finding.path is None:
            return finding
        return replace(finding, path=self.path(finding.path))

    def _part(self, part: str) -> str:
        if secret_partition(part, self._policy) is None:
            return part
        number = self._numbers.setdefault(part, len(self._numbers) + 1)
        return f"{part.partition('=')[0]}=***{number}"
