"""SIGKILL at random moments of every writing verb, between system calls and inside them."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path

from campaigns.children import Child, run_worker
from campaigns.disks import folders
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from campaigns.scenes import Scene, SceneOnDisk, scenes_on_disks

_KILLS = 2_100
#: Larger files than elsewhere: a kill has to meet a write.
_ROWS = 3_000


def run(effort: Effort) -> Outcome:
    """Start the worker and tell what it found."""
    tally = run_worker("campaigns.random_kills", effort)
    return Outcome(
        tried=(
            f"SIGKILL at random moments of {tally.counts['runs']} runs of writing verbs on "
            f"{' and '.join(folders())}, {tally.counts['alive']:,} times before it ended; then "
            "old file or new, and the next run ends well"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def main() -> None:
    """The worker."""
    effort = Effort(**json.loads(sys.argv[1]))
    every = scenes_on_disks(effort, rows=200 if effort.quick else _ROWS)
    work = partial(_count, effort=effort, kills=1 if effort.quick else _KILLS // len(every) or 1)
    print(in_pieces("random_kills", every, work, quick=effort.quick).json())


def _count(it: SceneOnDisk, effort: Effort, kills: int) -> Tally:
    """Kill runs of one scene."""
    alive, failures = 0, []
    chance = random.Random(f"{effort.seed} {it}")
    with it.folder() as folder:
        seconds = duration(it.scene, folder, 1 if effort.quick else 3)
        for _ in range(kills):
            after = chance.uniform(0, 1.1 * seconds)
            was_alive, wrong = trial(it.scene, folder, after)
            alive += was_alive
            if wrong:
                failures.append(f"{it}, {after:.4f} s: {wrong}")
    counts = Counter(runs=1, alive=alive)
    return Tally(trials=kills, failures=tuple(failures), counts=counts)


def duration(scene: Scene, folder: Path, runs: int) -> float:
    """How long the verb takes in a process of its own, at best."""
    times = []
    for _ in range(runs):
        scene.prepare(folder)
        started = time.monotonic()
        Child(lambda: asdict(scene.play(folder))).answer()
        times.append(time.monotonic() - started)
    return min(times)


def trial(scene: Scene, folder: Path, after: float) -> tuple[bool, str | None]:
    """Whether the kill met the run, and what went wrong."""
    scene.prepare(folder)
    child = Child(lambda: asdict(scene.play(folder)))
    time.sleep(after)
    was_alive = child.kill()
    return was_alive, scene.wrong(folder, None) or scene.not_ended(folder)


if __name__ == "__main__":
    main()
