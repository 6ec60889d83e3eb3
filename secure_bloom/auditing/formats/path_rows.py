"""Show paths in rows, named relative to their common folder, at most as many as fit on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

#: A path may have thousands of folders; rows name no more than these.
_DEEPEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRow:
    """Files that are shown as one row with this ``label``.

    ``paths`` are in the order of the report.
    """

    label: str
    paths: tuple[str, ...]


def common_folder(paths: Sequence[str]) -> str:
    """Return the deepest folder that contains all paths, with its slash, or "" if there is none."""
    if not paths:
        return ""
    # The folders that the first and the last path in order share, all paths between share too.
    first, last = (path.split("/")[:-1] for path in (min(paths), max(paths)))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    common = "".join(f"{name}/" for name, _ in same)
    return "" if common.endswith("://") or not common.strip("/") else common


def below_folder(path: str, folder: str) -> str:
    """Return a path without the folder that it is in. The folder itself keeps its name."""
    return path.removeprefix(folder) or path


def path_rows(paths: Sequence[str], folder: str, most: int) -> list[PathRow]:
    """Return at most ``most`` rows, named relative to ``folder``: files, else folders, else ranges.

    If there are too many folders, the level above is tried, as long as it has more than one folder.
    """
    names = [below_folder(path, folder) for path in paths]
    if len(paths) <= most:
        return [PathRow(label=n, paths=(p,)) for n, p in zip(names, paths, strict=True)]
    parts = [name.split("/")[:-1] for name in names]
    for depth in range(min(max(map(len, parts)), _DEEPEST), 0, -1):
        rows = _by_label(["/".join([*part[:depth], ""]) for part in parts], paths)
        if 1 < len(rows) <= most:
            return rows
    tops = _by_label([f"{part[0]}/" if part else "" for part in parts], paths)
    return _runs(tops if len(tops) > most else _by_label(names, paths), most)


def _by_label(labels: Sequence[str], paths: Sequence[str]) -> list[PathRow]:
    """Return one row for each label, sorted. The folder itself, which has no label, is ``./``."""
    pairs = sorted(zip(labels, paths, strict=True))
    grouped = groupby(pairs, key=lambda pair: pair[0])
    return [
        PathRow(label=label or "./", paths=tuple(path for _, path in group))
        for label, group in grouped
    ]


def _runs(rows: Sequence[PathRow], most: int) -> list[PathRow]:
    """Return the rows with neighbours joined, so that there are at most ``most``."""
    length = -(-len(rows) // most)
    return [_run(rows[start : start + length]) for start in range(0, len(rows), length)]


def _run(rows: Sequence[PathRow]) -> PathRow:
    first, last = rows[0].label, rows[-1].label
    return PathRow(
        label=first if len(rows) == 1 else f"{first} … {last}",
        paths=tuple(path for row in rows for path in row.paths),
    )
