"""Variants of the names of columns and folders: other case, other marks, a letter changed.

Spark ignores case in names of columns, so two names that differ only in case are one column.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import unquote

from secure_bloom.encryption.policy import KeyPolicy

#: Names that writers give the two levels of a list (LogicalTypes.md, Lists).
_LEVELS = {"bag": "list", "item": "element", "array": "element", "array_element": "element"}
_ONLY_PARQUET = {"list", "bag", "key_value", "entries", "map"}
#: What a list or a map calls its parts.
_PARTS = {"element", "key", "value"}
#: Two names are alike from this ratio of difflib on; shorter and longer names are not compared.
_ALIKE, _SHORTEST, _LONGEST = 0.8, 5, 100


def are_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two paths of one depth differ only as two spellings of a name do."""
    a, b = _plain(one), _plain(other)
    if a == b:
        return True
    if not all(_SHORTEST <= len(name) <= _LONGEST for name in (a, b)):
        return False
    # The first two ratios are quick upper bounds of the third.
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=False)
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return all(ratio() >= _ALIKE for ratio in ratios)


def names_within(path: Sequence[str], lengths: Collection[int]) -> Iterator[str]:
    """The plain names of the parts of a path that have so many levels, from any level on."""
    levels = column_levels(path)
    for start, first in enumerate(levels):
        # What a list or a map calls its parts is no name of a column.
        if start == 0 or first not in _PARTS:
            for length in lengths:
                if start + length <= len(levels):
                    yield _plain(levels[start : start + length])


def plain_name(path: Sequence[str]) -> str:
    """The name of a column, equal for all spellings that differ in case and marks alone."""
    return _plain(column_levels(path))


def column_levels(path: Sequence[str]) -> tuple[str, ...]:
    """The path without the levels that only Parquet has, to compare it with other schemas."""
    return (path[0], *(_LEVELS.get(part, part) for part in path[1:] if part not in _ONLY_PARQUET))


def short(text: str) -> str:
    """A name from a file; the middle is left out where it is longer than any honest name."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 30]}…{text[-29:]}"


def _plain(path: Sequence[str]) -> str:
    levels = [path[0], *(_LEVELS.get(part.lower(), part) for part in path[1:])]
    # A name of marks alone is itself: without them all such names would be one.
    return ".".join("".join(filter(str.isalnum, part.casefold())) or part for part in levels)


def secret_partition(folder: str, policy: KeyPolicy) -> str | None:
    """The sensitive column whose value this folder's name holds, as the policy writes it."""
    name, equals, _ = folder.partition("=")
    if not equals:
        return None
    name = unquote(name)
    if policy.own_key_for((name,)) is not None:
        return name
    return next(
        (
            path
            for path, rule in policy.columns.items()
            if rule.key is not None and path.casefold() == name.casefold()
        ),
        None,
    )
