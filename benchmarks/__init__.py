"""Everything that is said of speed, memory and size, measured: `make bench`.

    python -m benchmarks [--quick] [--only SUITE]...

A *suite* is a module of this package with one function,

    def cases(folder: Path, *, quick: bool) -> Iterable[Result]

which does its work in ``folder``, a new and empty one, and gives a :class:`results.Result` for each
thing that it measured.  ``quick`` asks for sizes at which all is done in seconds; such numbers say
that a suite works, and nothing more.  :data:`SUITES` lists the suites in the order they run.

The rules that they keep: both sides of a comparison in one run, in turns, warm, medians
(:func:`timing.medians`); only ratios are judged; what is left out of a side's time is said in the
result's ``note``.  ``results.json``, `docs/benchmarks.md`, the page of each suite below
`docs/benchmarks` and the pictures come from the same results, so they never disagree.  The first
line of a suite's docstring stands on its page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results.json"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
SUITE_PAGES: Final = ROOT / "docs" / "benchmarks"
PICTURES: Final = ROOT / "docs" / "pictures"

SUITES: Final = (
    "kernels",
    "files",
    "dictionary",
    "scaling",
    "probing",
    "footers",
    "memory",
    "rates",
    "sizes",
    "encrypted",
    "spark",
    "rekeying",
    "kms_calls",
    "small_files",
    "different_files",
    "delta",
    "reading",
    "other_filters",
    "objects",
)
