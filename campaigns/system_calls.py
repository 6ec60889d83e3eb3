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
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from campaigns.children import Child, in_time, run_worker
from campaigns.disks import folders
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from campaigns.preload import Action, Preload, build
from campaigns.scenes import Scene, SceneOnDisk, Told, files_in, scenes_on_disks
from testing.interleaving import HangError

#: Faults that are tried at every call.
EVERYWHERE = (
    (Action.KILL_BEFORE, 0),
    (Action.FAIL_BEFORE, errno.ENOSPC),
    (Action.FAIL_BEFORE, errno.EIO),
    (Action.FAIL_BEFORE, errno.EACCES),
    (Action.FAIL_BEFORE, errno.EINTR),
)
#: Besides, at calls that do more than look.  A kill after a look is one before the next call.
OF_DEEDS = ((Action.KILL_AFTER, 0),)
#: Besides, at calls that move bytes.
OF_BYTES = ((Action.SHORT, 0),)
#: Besides, at calls that change something: it is done, and reported as failed.
OF_CHANGES = ((Action.FAIL_AFTER, errno.EIO),)
_BYTES = ("read", "write", "pread", "pwrite", "writev", "pwritev", "copy_file_range", "sendfile")
_CHANGES = ("rename", "link", "unlink", "fsync", "ftruncate", "mkdir", "fchmod", "pwritev", "write")
_LOOKS = ("read", "pread", "lseek", "stat", "lstat", "fstat", "access", "opendir", "close")
_LOOKS += ("flistxattr", "fgetxattr")
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
        tally = run_worker("campaigns.system_calls", effort, LD_PRELOAD=str(library))
    return Outcome(
        tried=(
            f"each of {tally.counts['calls']:,} system calls of {tally.counts['runs']} runs of "
            f"writing verbs on {' and '.join(folders())}: killed before and after, ENOSPC, EIO, "
            "EACCES, EINTR, short, done but reported as failed; then old file or new, no false "
            "report, nothing left behind, the next run ends well"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def main() -> None:
    """The worker."""
    effort = Effort(**json.loads(sys.argv[1]))
    work = partial(_count, effort=effort, preload=Preload())
    tally = in_pieces("system_calls", scenes_on_disks(effort), work, quick=effort.quick)
    print(tally.json())


def _count(it: SceneOnDisk, effort: Effort, preload: Preload) -> Tally:
    """Try the faults of one scene."""
    failures = []
    chance, ends = random.Random(f"{effort.seed} {it}"), dict[Left, str | None]()
    with it.folder() as folder:
        seen, faults = plan(it.scene, preload, folder)
        if effort.quick:
            faults = chance.sample(faults, min(len(faults), _QUICK_FAULTS))
        for fault in faults:
            wrong = trial(it.scene, fault, preload, folder, ends)
            if wrong:
                failures.append(f"{it}: {fault}: {wrong}")
                print(failures[-1], file=sys.stderr, flush=True)
    counts = Counter(calls=seen, runs=1)
    return Tally(trials=len(faults), failures=tuple(failures), counts=counts)


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
        kinds += () if call.startswith(_LOOKS) else OF_DEEDS
        kinds += OF_BYTES if call.startswith(_BYTES) else ()
        kinds += OF_CHANGES if call.startswith(_CHANGES) else ()
        for action, error in kinds:
            yield Fault(at, call, action, error)


#: The files that a kill left.
Left = frozenset[tuple[str, tuple[bytes, int]]]


def trial(
    scene: Scene, fault: Fault, preload: Preload, folder: Path, ends: dict[Left, str | None]
) -> str | None:
    """One run with the fault, and the next one without; what went wrong.

    ``ends`` keeps what the next run came to, for kills that leave the same files again.
    """
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
    if answer is not None:
        # The process lives on, with whatever the run has left in it.
        return scene.not_ended(folder)
    left = frozenset(files_in(folder).items())
    if left not in ends:
        ends[left] = scene.not_ended(folder)
    return ends[left]


if __name__ == "__main__":
    main()
