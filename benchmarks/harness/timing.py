"""Seconds and memory of calls and of whole processes, both sides in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT

RUNS = 5


def nothing() -> None:
    """Do nothing: what stands before and behind most calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A call that is timed; ``before`` runs untimed before each of its runs."""

    run: Callable[[], object]
    before: Callable[[], object] = nothing


def medians(*sides: Side, runs: int = RUNS) -> list[float]:
    """The median seconds of each side; they run in turns, after one round that does not count."""
    rounds = [[_timed(side) for side in sides] for _ in range(runs + 1)]
    return [statistics.median(times) for times in zip(*rounds[1:], strict=True)]


def _timed(side: Side) -> float:
    side.before()
    return seconds(side.run)


def seconds(run: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def python(*arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What ``python ARGUMENTS...`` prints, run at the root of the project."""
    finished = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
    )
    if finished.returncode:
        raise SystemExit(f"python {arguments}: {finished.stderr[-2000:]}")
    return finished.stdout


def process(*arguments: str | Path, before: Callable[[], object] = nothing) -> Side:
    """A whole process, ``python ARGUMENTS...``, as a side."""
    return Side(run=lambda: python(*arguments), before=before)
