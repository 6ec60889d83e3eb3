"""Find the known names that are close to a misspelt name.

One object serves any number of misspelt names: a policy may have thousands that a table lacks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

#: With more names than these, only those with about the same beginning or end are compared: a
#: comparison takes long.
_MOST_COMPARED: Final = 100
#: Names that are listed if none is close.
_MOST_LISTED: Final = 20

_DIGITS: Final = re.compile(r"[-_.]?[0-9]+")


def differ_by_number(name: str, other: str) -> bool:
    """Return whether two names differ only in numbers, for example in a year or a version."""
    return name != other and _DIGITS.sub("", name) == _DIGITS.sub("", other)


class CloseNames:
    """Known names, in alphabetical order."""

    def __init__(self, known: Iterable[str]) -> None:
        self.names = sorted(set(known))
        self._lowered = {name.lower(): name for name in self.names}

    @classmethod
    def of(cls, known: Iterable[str] | CloseNames) -> CloseNames:
        """Return the known names as an object of this class."""
        return known if isinstance(known, CloseNames) else cls(known)

    @cached_property
    def _ordered(self) -> tuple[list[str], list[str]]:
        """The names in small letters, sorted as they are and as they are read backwards."""
        return sorted(self._lowered), sorted(name[::-1] for name in self._lowered)

    def near(self, name: str) -> Collection[str]:
        """Return the names that are near this one in the alphabet, read forwards or backwards."""
        if len(self.names) <= _MOST_COMPARED:
            return self.names
        found: dict[str, None] = {}
        for step, ordered in zip((1, -1), self._ordered, strict=True):
            place = bisect_left(ordered, name.lower()[::step])
            near = ordered[max(0, place - _MOST_COMPARED // 4) : place + _MOST_COMPARED // 4]
            found |= dict.fromkeys(self._lowered[text[::step]] for text in near)
        return found

    def close(self, name: str, most: int, cutoff: float = 0.6) -> list[str]:
        """Return the names that are close to this one, the closest first. Case does not count.

        ``cutoff`` is the least ratio of difflib.
        """
        # Imported here: few runs have a misspelt word.
        import difflib

        likely = {known.lower(): known for known in self.near(name)}
        return [likely[it] for it in difflib.get_close_matches(name.lower(), likely, most, cutoff)]

    def close_files(self, name: str, most: int) -> list[str]:
        """Return the names of files that are close to this one, the closest first.

        What precedes the ending is close as well: all files of a folder may have one ending.
        """
        return [
            it for it in self.close(name, most) if CloseNames([_stem(it)]).close(_stem(name), 1)
        ]

    def listed(self) -> str:
        """Return the first names, and how many more there are."""
        more = len(self.names) - _MOST_LISTED
        rest = f" and {more:,} more" if more > 0 else ""
        return f"{', '.join(self.names[:_MOST_LISTED])}{rest}"


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name


def near_file(path: Path) -> str | None:
    """Return the hint for a file that is not there: files beside it with similar names, or None."""
    try:
        close = CloseNames(it.name for it in path.parent.iterdir()).close_files(path.name, 3)
    except OSError:
        return None
    return f"did you mean {', '.join(str(path.parent / it) for it in close)}?" if close else None
