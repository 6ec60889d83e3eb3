"""Inputs chosen by the code that they reach (atheris): the same promises as of mutated ones."""

from __future__ import annotations

from campaigns.fuzzing.engine import fuzz
from campaigns.outcome import Effort, Outcome

FULL, QUICK = 1_000_000, 2_000


def run(effort: Effort) -> Outcome:
    """All targets, each in a process of its own."""
    trials = QUICK if effort.quick else FULL
    return fuzz(trials, effort.seed, by_coverage=True, journal=effort.journal)
