"""Attacks on the program that stay a part of it: `make faults` and its neighbours.

    python -m campaigns GROUP_OR_CAMPAIGN... [--quick] [--seed N]

A *campaign* is a module of this package with one function,

    def run(effort: Effort) -> Outcome

which tries the same promise very many times and counts how often it was broken.  ``effort.quick``
asks for a run of a few seconds; such runs are tests (`campaigns/tests/`).  A full run writes its
row of `docs/reliability.md`.  :data:`GROUPS` lists the campaigns behind each `make` target.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reliability.md"

#: What `make GROUP` runs, in this order.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "faults": ("system_calls", "power_loss", "random_kills", "concurrent_runs"),
    "fuzz": ("mutation_fuzz", "coverage_fuzz"),
    "integrity": ("integrity",),
    "no_false_negative": ("no_false_negative",),
    "histories": ("iceberg_histories", "paimon_histories"),
}
