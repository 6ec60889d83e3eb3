"""Inputs mutated from real ones: named errors only, no hang, no more than 1 GiB of memory."""

from __future__ import annotations

from campaigns.fuzzing.engine import fuzz
from campaigns.outcome import Effort, Outcome

FULL, QUICK = 10_000_000, 4_000


def run(effort: Effort) -> Outcome:
    """All targets, each in a process of its own."""
    trials = QUICK if effort.quick else FULL
    return fuzz(trials, effort.seed, journal=effort.journal, words=effort.scenes)
