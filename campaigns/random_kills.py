"""SIGKILL at random moments of every writing verb, between system calls and inside them."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from campaigns.children import Child, run_worker
from campaigns.disks import folders
from campaigns.outcome import Effort, Outcome
from campaigns.scenes import Scene, same_nonces, scenes

_KILLS = 2_100
#: Larger files than elsewhere: a kill has to meet a write.
_ROWS = 3_000


def run(effort: Effort) -> Outcome:
    """Start the worker and tell what it found."""
    found = run_worker("campaigns.random_kills", effort)
    return Outcome(
        tried=(
            f"SIGKILL at random moments of {found['scenes']} runs of writing verbs on "
            f"{' and '.join(found['disks'])}, {found['alive']:,} times before it ended; then "
            "old file or new, and the next run ends well"
        ),
        trials=found["trials"],
        failures=tuple(found["failures"]),
    )


def main() -> None:
    """The worker."""
    effort = Effort(**json.loads(sys.argv[1]))
    chance = random.Random(effort.seed)
    disks = folders()
    failures, trials, alive, played = [], 0, 0, 0
    for number, (disk, parent) in enumerate(disks.items()):
        with tempfile.TemporaryDirectory(dir=parent, prefix="kills-") as folder, same_nonces():
            rows = 200 if effort.quick else _ROWS
            share = effort.share(number, len(disks))
            every = list(scenes(Path(folder), rows=rows, only=effort.scenes, share=share))
            kills = 1 if effort.quick else max(1, _KILLS // len(every) // len(disks))
            for scene in every:
                played += 1
                with scene.setting():
                    seconds = duration(scene, Path(folder, "scene"), 1 if effort.quick else 3)
                    for _ in range(kills):
                        after = chance.uniform(0, 1.1 * seconds)
                        was_alive, wrong = trial(scene, Path(folder, "scene"), after)
                        trials, alive = trials + 1, alive + was_alive
                        if wrong:
                            failures.append(f"{scene.name} on {disk}, {after:.4f} s: {wrong}")
    found = {"scenes": played, "trials": trials, "alive": alive, "failures": failures}
    print(json.dumps({**found, "disks": list(disks)}))


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
