"""Run campaigns; full runs write their rows of docs/reliability.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from campaigns import GROUPS
from campaigns.outcome import Effort, Outcome
from campaigns.reliability import Row, commit, record
from testing.project import cpu_model


def main() -> int:
    """The command; 1 when a campaign found something."""
    arguments = parse()
    # Whoever stops a run gets the row of what was done.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    effort = Effort(
        quick=arguments.quick,
        seed=arguments.seed,
        scenes=tuple(arguments.scenes),
        journal=arguments.journal,
    )
    found = 0
    for campaign in named(arguments.campaigns):
        outcome = run(campaign, effort)
        found += len(outcome.failures)
        if not effort.quick:
            record(row(campaign, outcome, effort.scenes))
    return 1 if found else 0


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("campaigns", nargs="+", choices=[*GROUPS, *sum(GROUPS.values(), ())])
    parser.add_argument("--quick", action="store_true", help="a few seconds; writes no row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--journal",
        metavar="FILE",
        help="of fuzz: remembers what was done, so that a run that was stopped goes on there",
    )
    parser.add_argument(
        "--scenes",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only what begins with a word: scenes of faults, targets of mutation_fuzz; they get "
        "rows of their own",
    )
    return parser.parse_args()


def named(names: Iterable[str]) -> list[str]:
    """The campaigns that the names mean, a group standing for all of its own."""
    return list(dict.fromkeys(one for name in names for one in GROUPS.get(name, (name,))))


def run(campaign: str, effort: Effort) -> Outcome:
    """Run one campaign and tell of it on stderr."""
    started = time.monotonic()
    outcome: Outcome = import_module(f"campaigns.{campaign}").run(effort)
    for failure in outcome.failures:
        print(f"{campaign}: {failure}", file=sys.stderr)
    print(
        f"{campaign}: {outcome.trials:,} trials, {len(outcome.failures):,} failures, "
        f"{time.monotonic() - started:.0f} s",
        file=sys.stderr,
    )
    return outcome


def row(campaign: str, outcome: Outcome, scenes: Sequence[str]) -> Row:
    """What the page says of a run that has just ended."""
    only = f" --scenes {shlex.join(scenes)}" if scenes else ""
    cpu, cores = cpu_model(Path("/proc/cpuinfo")), os.cpu_count()
    return Row(
        campaign=f"{campaign}: {', '.join(scenes)}" if scenes else campaign,
        outcome=outcome,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=commit(),
        machine=f"{cpu}, {cores} cores, {platform.system()} {platform.release()}",
        command=f"python -m campaigns {campaign}{only}",
    )


if __name__ == "__main__":
    sys.exit(main())
