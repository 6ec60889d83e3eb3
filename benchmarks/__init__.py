"""Everything that is said of speed, memory and size, measured: `make bench`.

    python -m benchmarks [--quick] [--only SUITE]...

A *suite* is a module of :mod:`benchmarks.suites` with one function,

    def cases(folder: Path, *, quick: bool) -> Iterable[Result]

which does its work in ``folder``, a new and empty one, and gives a :class:`harness.results.Result`
for each thing that it measured.  ``quick`` asks for sizes at which all is done in seconds; such
numbers say that a suite works, and nothing more.  :data:`SUITES` lists the suites in the order they
run.

The rules that they keep: both sides of a comparison in one run, in turns, warm, medians
(:func:`harness.timing.medians`); only ratios are judged; what is left out of a side's time is said
in the result's ``note``.  ``results.json``, `docs/benchmarks.md`, the page of each suite below
`docs/benchmarks` and the pictures come from the same results, so they never disagree.  The first
line of a suite's docstring is on its page.

:mod:`benchmarks.harness` has what suites share: tables to measure on, clocks, results, and the
pages and pictures that are made of them.  It imports no suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results.json"
SUITE_FILES: Final = ROOT / "benchmarks" / "suites"
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
    "lookups",
    "other_filters",
    "tracing",
    "objects",
)
