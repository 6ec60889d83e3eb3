"""Find the table of a policy to which a file, a folder or the address of a table belongs.

    orders/*            the folder ``orders``, wherever it lies, and everything below it
    lake/orders         that folder of a folder ``lake``
    s3://b/lake/*       from the beginning of the address, because the pattern has a scheme
    shop.orders         a table of a catalog: iceberg://CATALOG/shop.orders, or Spark's name

A pattern is compared with whole parts of a path, between two slashes.  In a part ``*``, ``?`` and
``[...]`` mean what they mean in a shell, and ``**`` is any number of parts.  Everything below a
match belongs to it.  The scheme itself is not compared: s3 and s3a lead to one object.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import PolicyError


class UnknownTableError(PolicyError):
    """A file belongs to no table of a policy, or to several."""


_WILD: Final = frozenset("*?[")
#: The least ratio of difflib for a pattern that was meant for a path.
_ALIKE: Final = 0.8


@dataclass(frozen=True, slots=True)
class _Match:
    """The parts of a path, from ``start`` up to ``end``, that a pattern names."""

    pattern: str
    start: int
    end: int

    def order(self) -> tuple[int, bool, str]:
        """Return the key that sorts narrower matches first."""
        return self.start - self.end, not _WILD.isdisjoint(self.pattern), self.pattern

    def goes_before(self, other: _Match) -> bool:
        """Return whether this pattern names more of the path than another one."""
        if (self.start, self.end) == (other.start, other.end):
            return _WILD.isdisjoint(self.pattern) and not _WILD.isdisjoint(other.pattern)
        # A pattern that names no part, such as "*", is for what no other pattern names.
        if other.start == other.end:
            return True
        return self.start <= other.start and other.end <= self.end


def tables_of(address: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of the tables to which an address belongs, the narrowest first.

    A pattern is narrower than another one if its match contains the match of the other. "*" is
    for addresses that no other pattern names. Raises UnknownTableError if no match contains all
    others: otherwise the name of a folder in a file's path would choose the file's rules.
    """
    parts = _parts(address)
    matches = [it for it in (_match(pattern, parts) for pattern in patterns) if it is not None]
    for match in matches:
        wider = [it for it in matches if it is not match]
        if all(match.goes_before(it) for it in wider):
            named = sorted((it for it in wider if it.end > it.start), key=_Match.order)
            return match.pattern, *(it.pattern for it in named)
    if not matches:
        return ()
    raise UnknownTableError(
        f"it belongs to several tables of the policy: {', '.join(it.pattern for it in matches)}",
        hint="make the right pattern longer, so that it contains the parts that the other names",
        path=address,
    )


def inside(pattern: str, patterns: Iterable[str]) -> list[str]:
    """Return the patterns of tables that may lie in the table of ``pattern``.

    These are the more specific patterns. Any pattern that names a part of a path is more specific
    than "*".
    """
    outer, _ = _wanted(pattern)
    found = []
    for other in patterns:
        inner, _ = _wanted(other)
        more = range(len(inner) - len(outer) + 1) if len(inner) > len(outer) else ()
        if any(all(map(fnmatchcase, inner[it : it + len(outer)], outer)) for it in more):
            found.append(other)
    return found


def like_table(address: str, patterns: Iterable[str]) -> tuple[str, str] | None:
    """Return a pattern that looks like a misspelt part of an address, and that part."""
    parts = _parts(address)
    for pattern in patterns:
        wanted, _ = _wanted(pattern)
        windows = range(len(parts) - len(wanted) + 1)
        likely = CloseNames("/".join(parts[it : it + len(wanted)]) for it in windows if wanted)
        if found := likely.close("/".join(wanted), 1, _ALIKE):
            return pattern, found[0]
    return None


def _match(pattern: str, parts: list[str]) -> _Match | None:
    """Return the match that ends nearest to the end of a path, or None."""
    wanted, is_anchored = _wanted(pattern)
    if not wanted:
        return _Match(pattern, 0, 0)
    # Most patterns of a policy with many tables end here.
    if any(piece not in parts and _WILD.isdisjoint(piece) for piece in wanted):
        return None
    found = [
        _Match(pattern, start, max(ends))
        for start in range(1 if is_anchored else len(parts))
        if (ends := _ends(wanted, parts, start))
    ]
    return max(found, key=lambda it: (it.end, -it.start), default=None)


@functools.lru_cache(maxsize=1024)
def _wanted(pattern: str) -> tuple[tuple[str, ...], bool]:
    """Return the parts of a pattern, and whether they begin where a path begins."""
    is_anchored = pattern.startswith("/") or "://" in pattern
    wanted = _split(pattern)
    while wanted and wanted[-1] in ("*", "**"):
        wanted.pop()
    return tuple(wanted), is_anchored


def _ends(wanted: Sequence[str], parts: list[str], start: int) -> set[int]:
    """Return where a pattern can end if it begins at ``start``."""
    ends = {start}
    for piece in wanted:
        if piece == "**":
            ends = {later for end in ends for later in range(end, len(parts) + 1)}
        else:
            ends = {end + 1 for end in ends if end < len(parts) and fnmatchcase(parts[end], piece)}
    return ends


def _parts(address: str) -> list[str]:
    if "://" not in address and not address.startswith("file:"):
        # Links are not followed: what counts is the path that the user named.
        address = os.path.abspath(address)  # noqa: PTH100
    return _split(address)


def _split(path: str) -> list[str]:
    place = path.partition("://")[2] if "://" in path else path.removeprefix("file:")
    return [part for part in place.split("/") if part not in ("", ".")]
