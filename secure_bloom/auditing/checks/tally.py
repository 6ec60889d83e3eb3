"""What is counted over all column chunks of one file: bytes of filters, and signs of zero."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ZeroTally:
    """Of one column: row groups whose filter knows one zero, and how many would do so by chance.

    ``by_chance`` is the expected number, over all row groups of which statistics do not tell.
    """

    row_groups: list[int] = field(default_factory=list)
    by_chance: float = 0.0


@dataclass(slots=True, kw_only=True)
class Tally:
    """Of one file: ``filter_bytes`` that were read, and ``zeros`` by the name of the column."""

    filter_bytes: int = 0
    zeros: dict[str, ZeroTally] = field(default_factory=dict)
