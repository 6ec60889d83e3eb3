"""Counts over all column chunks of a file: bytes of filters, and signs of zero."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ZeroTally:
    """One column's row groups whose filter has exactly one of the two zeros.

    ``by_chance`` is how many of them chance explains: the expected number, over the row groups
    whose statistics do not tell whether there is a zero.
    """

    row_groups: list[int] = field(default_factory=list)
    by_chance: float = 0.0


@dataclass(slots=True, kw_only=True)
class Tally:
    """The ``filter_bytes`` that were read of a file, and ``zeros`` by the name of the column."""

    filter_bytes: int = 0
    zeros: dict[str, ZeroTally] = field(default_factory=dict)
