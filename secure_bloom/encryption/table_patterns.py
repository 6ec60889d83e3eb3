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
patterns as its name.  If only "*" is for the name, the path of each file counts, and for the table
itself the path of its folder.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from secure_bloom.calling.close_names import CloseNames, differ_by_number
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
    """Yield the matches of an address by the name of its table in a catalog, then by its path.

    A table of a catalog has the paths of its folders, if ``places`` has them.
    """
    parts = _parts(address)
    if is_catalog_address(address):
        yield _matches(parts, patterns, dotted=True)
        # The table's folder first, which is shorter than the path of its metadata file.
        for place in sorted((it for it in places if places[it] == address), key=len):
            yield _matches(place, patterns, dotted=False)
        return
    name = _name_at(parts, places)
    if name is not None:
        yield _matches(_name_parts(name), patterns, dotted=True)
    elif _is_dotted(address):
        # Spark's name of a table, or a file of the working folder. Folders named so are rare.
        names = [it for it in patterns if _is_dotted(it)]
        whole = _name_parts(address)
        yield [it for it in _matches(whole, names, dotted=True) if it.end == len(whole)]
    yield _matches(parts, patterns, dotted=False)


def _name_at(parts: Parts, places: Places) -> str | None:
    """Return the address of the table of a catalog to which a path belongs, or None."""
    ends = range(len(parts), 0, -1) if places else ()
    return next((places[above] for end in ends if (above := parts[:end]) in places), None)


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


def misspelt(
    given: Iterable[str],
    files: Collection[str],
    patterns: Collection[str],
    places: Places | None = None,
) -> Iterator[tuple[str, str, str]]:
    """Yield each pattern that is like a part of a path that no pattern names.

    Yield with it that part, and the address that has the pattern in place of the part.  ``given``
    are the paths in which the files lie: the part is the end of one of them, or below it.  A
    pattern of a table that has files is left out, and so are globs and paths of no table.
    """
    places, tops = places or {}, [_top(path) for path in given]
    folders = {os.path.dirname(path) for path in files}  # noqa: PTH120 - also of objects
    tables = {_name_at(_parts(path), places) or path: None for path in (*given, *sorted(folders))}
    found = (_Address.of(address, patterns, tops) for address in tables)
    # What belongs to no table has no rules, which is an error of its own.
    windows = [window for window in found if window.names]
    used = {name for window in windows for name in window.names}
    for pattern in patterns:
        if pattern in used or not _WILD.isdisjoint(pattern.rstrip("*/")):
            continue
        like = next((it for window in windows if (it := window.like(pattern))), None)
        # A pattern may name single files of a folder, or the folder of a table of a catalog.
        if like and not any(_is_in(it, pattern, patterns, places) for it in (*given, *files)):
            yield pattern, *like


def _is_in(path: str, pattern: str, patterns: Collection[str], places: Places) -> bool:
    try:
        return pattern in tables_of(path, patterns, places)
    except UnknownTableError:
        return False


def _top(path: str) -> Parts:
    """Return the parts of a path that is given, up to the first glob."""
    parts = _parts(path)
    return tuple(itertools.takewhile(_WILD.isdisjoint, parts))


@dataclass(frozen=True, slots=True)
class _Address:
    """The parts of an address from ``start`` on, where ``names`` are the patterns that fit.

    ``spans`` are the parts that these patterns name.
    """

    address: str
    parts: Parts
    start: int
    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, address: str, patterns: Iterable[str], tops: Sequence[Parts]) -> _Address:
        """Return the parts of an address. ``tops`` are those of the paths that are given."""
        parts, dotted = _parts(address), is_catalog_address(address)
        matches = _matches(parts, tuple(patterns), dotted=dotted)
        above = [len(top) - 1 for top in tops if parts[: len(top)] == top]
        return cls(
            address=address,
            parts=parts,
            start=0 if dotted else max(0, min(above, default=len(parts))),
            names=tuple(it.pattern for it in matches),
            spans=tuple((it.start, it.end) for it in matches),
        )

    def like(self, pattern: str) -> tuple[str, str] | None:
        """Return the part that a pattern is like, and the address with the pattern in its place."""
        dotted = is_catalog_address(self.address)
        wanted, is_anchored = _wanted(pattern, dotted=dotted)
        for start in range(1 if is_anchored else len(self.parts)):
            end = start + len(wanted)
            part = self.parts[start:end]
            is_named = any(first <= start and end <= last for first, last in self.spans)
            if self.start < end <= len(self.parts) and not is_named and _are_alike(wanted, part):
                other = (*self.parts[:start], *wanted)
                return ("." if dotted else "/").join(part), _address_of(self.address, other)
        return None


def _are_alike(wanted: Parts, part: Parts) -> bool:
    """Return whether each part is the wanted one or like it. Years and versions are not alike."""
    pairs = [(name, other) for name, other in zip(wanted, part, strict=True) if name != other]
    return not any(differ_by_number(name, other) for name, other in pairs) and all(
        # Swapped letters make a short name less like the other one than any other mistake.
        sorted(name) == sorted(other) or CloseNames([other]).close(name, 1, _ALIKE)
        for name, other in pairs
    )


def _address_of(like: str, parts: Parts) -> str:
    """Return the address that has these parts, in the store or the catalog of another one."""
    scheme = like.partition("://")[0] if "://" in like and not like.startswith("file:") else ""
    if is_catalog_address(like):
        return f"{scheme}://{parts[0]}/{'.'.join(parts[1:])}"
    return f"{scheme}://{'/'.join(parts)}" if scheme else f"/{'/'.join(parts)}"


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
