"""Find the table of a policy to which a file, a folder or the address of a table belongs.

    orders/*            the folder ``orders``, wherever it lies, and everything below it
    lake/orders         that folder of a folder ``lake``
    s3://b/lake/*       from the beginning of the address, because the pattern has a scheme
    shop.orders         a table of a catalog: iceberg://CATALOG/shop.orders, or Spark's name

A pattern is compared with whole parts of a path, between two slashes.  In a part ``*``, ``?`` and
``[...]`` mean what they mean in a shell, and ``**`` is any number of parts.  Everything below a
match belongs to it.  The scheme itself is not compared: s3 and s3a lead to one object.

The name of a table in a catalog has parts between dots, too: ``shop.orders``, ``shop/orders`` and
``prod.shop.orders`` all mean iceberg://prod/shop.orders.  The files of that table have the same
patterns as its name.  If only "*" is for the name, the path of each file counts.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import PolicyError


class UnknownTableError(PolicyError):
    """A file belongs to no table of a policy, or to several."""


_WILD: Final = frozenset("*?[")
#: The least ratio of difflib for a pattern that was meant for a path.
_ALIKE: Final = 0.8
#: The schemes of addresses that name a table of a catalog or a warehouse, and no file.
_CATALOGS: Final = ("iceberg://", "paimon://")
#: A branch of a Paimon table belongs to the table.
_BRANCH: Final = re.compile(r"\$branch_[^/$]+/?$")

#: The parts of a path.
Parts: TypeAlias = tuple[str, ...]
#: The folders and files of tables of a catalog, by their parts -> the address of the table.
Places: TypeAlias = Mapping[Parts, str]


@dataclass(frozen=True, slots=True)
class _Match:
    """The parts of a path, from ``start`` up to ``end``, that a pattern names."""

    pattern: str
    start: int
    end: int

    def order(self) -> tuple[int, tuple[bool, bool], str]:
        """Return the key that sorts narrower matches first."""
        return self.start - self.end, self._vagueness(), self.pattern

    def _vagueness(self) -> tuple[bool, bool]:
        """Return the order of patterns for the same parts: names of catalogs, paths, globs."""
        return not _WILD.isdisjoint(self.pattern), not _is_dotted(self.pattern)

    def goes_before(self, other: _Match) -> bool:
        """Return whether this pattern names more of the path than another one."""
        if (self.start, self.end) == (other.start, other.end):
            return self._vagueness() < other._vagueness()
        # A pattern that names no part, such as "*", is for what no other pattern names.
        if other.start == other.end:
            return True
        return self.start <= other.start and other.end <= self.end


def tables_of(
    address: str, patterns: Iterable[str], places: Places | None = None
) -> tuple[str, ...]:
    """Return the patterns of the tables to which an address belongs, the narrowest first.

    A pattern is narrower than another one if its match contains the match of the other. "*" is
    for addresses that no other pattern names. Raises UnknownTableError if no match contains all
    others: otherwise the name of a folder in a file's path would choose the file's rules.
    """
    patterns = tuple(patterns)
    for matches in _ways(address, patterns, places or {}):
        found = _narrowest(address, matches)
        if found and found[0].strip("*/"):
            return found
    return found


def _ways(address: str, patterns: Sequence[str], places: Places) -> Iterator[list[_Match]]:
    """Yield the matches of an address by the name of its table in a catalog, then by its path."""
    parts = _parts(address)
    if is_catalog_address(address):
        yield _matches(parts, patterns, dotted=True)
        return
    ends = range(len(parts), 0, -1) if places else ()
    name = next((places[above] for end in ends if (above := parts[:end]) in places), None)
    if name is not None:
        yield _matches(_name_parts(name), patterns, dotted=True)
    elif _is_dotted(address):
        # Spark's name of a table, or a file of the working folder. Folders named so are rare.
        names = [it for it in patterns if _is_dotted(it)]
        whole = _name_parts(address)
        yield [it for it in _matches(whole, names, dotted=True) if it.end == len(whole)]
    yield _matches(parts, patterns, dotted=False)


def _matches(parts: Parts, patterns: Sequence[str], *, dotted: bool) -> list[_Match]:
    found = (_match(pattern, parts, dotted=dotted) for pattern in patterns)
    return [it for it in found if it is not None]


def _narrowest(address: str, matches: Sequence[_Match]) -> tuple[str, ...]:
    for match in matches:
        wider = [it for it in matches if it is not match]
        if all(match.goes_before(it) for it in wider):
            named = sorted((it for it in wider if it.end > it.start), key=_Match.order)
            return match.pattern, *(it.pattern for it in named)
    if not matches:
        return ()
    raise UnknownTableError(
        f"it belongs to several tables of the policy: {', '.join(it.pattern for it in matches)}",
        hint="make the pattern of its own table longer, so that it includes the other pattern",
        path=address,
    )


def is_catalog_address(address: str) -> bool:
    """Return whether an address names a table of a catalog or a warehouse, and no file."""
    return address.lower().startswith(_CATALOGS)


def places_of(names: Mapping[str, str]) -> Places:
    """Return the folders and files of tables of a catalog in the form for :func:`tables_of`."""
    return {_parts(path): address for path, address in names.items()}


def inside(pattern: str, patterns: Iterable[str]) -> list[str]:
    """Return the patterns of tables that may lie in the table of ``pattern``.

    These are the more specific patterns. Any pattern that names a part of a path is more specific
    than "*".
    """
    outer, _ = _wanted(pattern, dotted=_is_dotted(pattern))
    found = []
    for other in patterns:
        inner, _ = _wanted(other, dotted=_is_dotted(pattern))
        more = range(len(inner) - len(outer) + 1) if len(inner) > len(outer) else ()
        if any(all(map(fnmatchcase, inner[it : it + len(outer)], outer)) for it in more):
            found.append(other)
    return found


def like_table(address: str, patterns: Iterable[str]) -> tuple[str, str] | None:
    """Return a pattern that looks like a misspelt part of an address, and that part."""
    parts, dotted = _parts(address), is_catalog_address(address)
    dot = "." if dotted else "/"
    for pattern in patterns:
        wanted, _ = _wanted(pattern, dotted=dotted)
        windows = range(len(parts) - len(wanted) + 1)
        likely = CloseNames(dot.join(parts[it : it + len(wanted)]) for it in windows if wanted)
        if found := likely.close(dot.join(wanted), 1, _ALIKE):
            return pattern, found[0]
    return None


def _match(pattern: str, parts: Parts, *, dotted: bool) -> _Match | None:
    """Return the match that ends nearest to the end of a path, or None."""
    wanted, is_anchored = _wanted(pattern, dotted=dotted)
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


@functools.lru_cache(maxsize=2048)
def _wanted(pattern: str, *, dotted: bool) -> tuple[Parts, bool]:
    """Return the parts of a pattern, and whether they begin where a path begins.

    With ``dotted`` they are those of the name of a table in a catalog.
    """
    is_anchored = pattern.startswith("/") or "://" in pattern
    wanted = _split(pattern)
    wanted = wanted if not dotted else [it for part in wanted for it in part.split(".")]
    while wanted and wanted[-1] in ("*", "**"):
        wanted.pop()
    return tuple(wanted), is_anchored


def _is_dotted(name: str) -> bool:
    """Return whether a pattern or an address is like the name of a table in a catalog."""
    return "." in name.strip(".") and "/" not in name


def _ends(wanted: Sequence[str], parts: Parts, start: int) -> set[int]:
    """Return where a pattern can end if it begins at ``start``."""
    ends = {start}
    for piece in wanted:
        if piece == "**":
            ends = {later for end in ends for later in range(end, len(parts) + 1)}
        else:
            ends = {end + 1 for end in ends if end < len(parts) and fnmatchcase(parts[end], piece)}
    return ends


def _name_parts(name: str) -> Parts:
    """Return the parts of the name of a table in a catalog, also as Spark writes it."""
    parts = _split(_BRANCH.sub("", name))
    return tuple(it.strip("`") for part in parts for it in part.split("."))


def _parts(address: str) -> Parts:
    if is_catalog_address(address):
        return _name_parts(address)
    if "://" not in address and not address.startswith("file:"):
        # Links are not followed: what counts is the path that the user named.
        address = os.path.abspath(address)  # noqa: PTH100
    return tuple(_split(address))


def _split(path: str) -> list[str]:
    place = path.partition("://")[2] if "://" in path else path.removeprefix("file:")
    return [part for part in place.split("/") if part not in ("", ".")]
