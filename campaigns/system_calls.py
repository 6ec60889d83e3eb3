"""Each system call of each writing verb fails, comes short, or is the process's last.

A worker process with `preload.c` loaded runs the verb with one fault planned, in a child where the
fault is a kill, and looks at what is left.  The file systems are real ones.
"""

from __future__ import annotations

import errno
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from campaigns.children import Child, in_time, run_worker
from campaigns.disks import folders
from campaigns.outcome import Effort, Outcome
from campaigns.preload import Action, Preload, build
from campaigns.scenes import Scene, Told, same_nonces, scenes
from testing.interleaving import HangError

#: Faults that are tried at every call.
EVERYWHERE = (
    (Action.KILL_BEFORE, 0),
    (Action.KILL_AFTER, 0),
    (Action.FAIL_BEFORE, errno.ENOSPC),
    (Action.FAIL_BEFORE, errno.EIO),
    (Action.FAIL_BEFORE, errno.EACCES),
    (Action.FAIL_BEFORE, errno.EINTR),
)
#: Besides, at calls that move bytes.
OF_BYTES = ((Action.SHORT, 0),)
#: Besides, at calls that change something: it is done, and reported as failed.
OF_CHANGES = ((Action.FAIL_AFTER, errno.EIO),)
_BYTES = ("read", "write", "pread", "pwrite", "writev", "pwritev", "copy_file_range", "sendfile")
_CHANGES = ("rename", "link", "unlink", "fsync", "ftruncate", "mkdir", "fchmod", "pwritev", "write")
_KILLS = (Action.KILL_BEFORE, Action.KILL_AFTER)
#: Of each scene in a quick run.
_QUICK_FAULTS = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the call with number ``at``, which is named ``call``."""

    at: int
    call: str
    action: Action
    error: int

    def __str__(self) -> str:
        what = self.action.name.lower().replace("_", " ")
        code = f" {errno.errorcode[self.error]}" if self.error else ""
        return f"{what}{code} at call {self.at}, {self.call}"


def run(effort: Effort) -> Outcome:
    """Start the worker and tell what it found."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        library = build(Path(folder, "preload.so"))
        found = run_worker("campaigns.system_calls", effort, LD_PRELOAD=str(library))
    return Outcome(
        tried=(
            f"each of {found['calls']:,} system calls of {found['scenes']} runs of writing verbs "
            f"on {' and '.join(found['disks'])}: killed before and after, ENOSPC, EIO, EACCES, "
            "EINTR, short, done but reported as failed; then old file or new, no false report, "
            "nothing left behind, the next run ends well"
        ),
        trials=found["trials"],
        failures=tuple(found["failures"]),
    )


def main() -> None:
    """The worker."""
    effort = Effort(**json.loads(sys.argv[1]))
    preload, chance = Preload(), random.Random(effort.seed)
    failures, trials, calls, played = [], 0, 0, 0
    disks = folders()
    for number, (disk, parent) in enumerate(disks.items()):
        share = effort.share(number, len(disks))
        with tempfile.TemporaryDirectory(dir=parent, prefix="faults-") as folder, same_nonces():
            for scene in scenes(Path(folder), only=effort.scenes, share=share):
                with scene.setting():
                    seen, faults = plan(scene, preload, Path(folder, "scene"))
                    if effort.quick:
                        faults = chance.sample(faults, min(len(faults), _QUICK_FAULTS))
                    for fault in faults:
                        wrong = trial(scene, fault, preload, Path(folder, "scene"))
                        if wrong:
                            failures.append(f"{scene.name} on {disk}: {fault}: {wrong}")
                            print(failures[-1], file=sys.stderr, flush=True)
                calls, trials, played = calls + seen, trials + len(faults), played + 1
    found = {"calls": calls, "scenes": played, "trials": trials, "failures": failures}
    print(json.dumps({**found, "disks": list(disks)}))


def plan(scene: Scene, preload: Preload, folder: Path) -> tuple[int, list[Fault]]:
    """How many calls the verb makes, and every fault that is worth a trial."""
    scene.prepare(folder)
    for _ in range(2):  # the first one imports and compiles
        scene.prepare(folder)
        preload.arm()
        told = scene.play(folder)
        calls = preload.disarm()
    if told.status != "done":
        raise AssertionError(f"{scene.name} does not work at all: {told}")
    return len(calls), list(_faults(calls))


def _faults(calls: list[str]) -> Iterator[Fault]:
    for at, call in enumerate(calls):
        kinds = EVERYWHERE
        kinds += OF_BYTES if call.startswith(_BYTES) else ()
        kinds += OF_CHANGES if call.startswith(_CHANGES) else ()
        for action, error in kinds:
            yield Fault(at, call, action, error)


def trial(scene: Scene, fault: Fault, preload: Preload, folder: Path) -> str | None:
    """One run with the fault, and the next one without; what went wrong."""
    scene.prepare(folder)

    def play() -> dict[str, str]:
        preload.arm(fault.at, fault.action, fault.error)
        told = scene.play(folder)
        preload.disarm()
        return asdict(told)

    try:
        # A child costs five times as much as the verb: only what is killed runs in one.
        answer = Child(play).answer() if fault.action in _KILLS else in_time(play)
    except (HangError, ValueError) as error:
        return f"{error}"
    told = None if answer is None else Told(**answer)
    wrong = scene.wrong(folder, told)
    if wrong or (told is not None and told.status == "done"):
        return wrong
    return scene.not_ended(folder)


if __name__ == "__main__":
    main()
