"""The words that every format uses for counts, columns and places."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.formats.grouping import Group
from secure_bloom.formats.legible import legible

_MOST_COLUMNS = 4
_LONGEST_COLUMN = 60


def counted(count: int, thing: str) -> str:
    """A number with its noun: ``1 file``, ``10,000 files``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def named_columns(columns: Sequence[str]) -> str:
    """``column email``, ``columns email, iban and 3 more``; empty for none."""
    if not columns:
        return ""
    named = ", ".join(legible(name, _LONGEST_COLUMN) for name in columns[:_MOST_COLUMNS])
    more = len(columns) - _MOST_COLUMNS
    return f"column{'s'[: len(columns) > 1]} {named}" + (f" and {more:,} more" if more > 0 else "")


def extent(group: Group) -> str:
    """How far a mistake goes: its files and row groups."""
    if not group.paths:
        return "in the policy, or the dataset as a whole"
    files = counted(len(group.paths), "file")
    return f"{files}, {counted(group.row_groups, 'row group')}" if group.row_groups else files
