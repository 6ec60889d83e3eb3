"""Two or three runs that change keys and filters of one file at once: it opens, whatever they do.

A round is a file as it is at the start, two or three verbs, and an order of their steps.  In every
third round one of the runs is killed.  Afterwards the file must open and have its rows, and the
next run must leave it with the key material that it names and nothing else.

In some rounds another program takes part, which removes the file or replaces it by another one.
Afterwards the old rows must not be back.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import secure_bloom as sb
from campaigns.disks import folders
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.storage import dispatch, local, locks, open_folder
from testing.interleaving import KilledError, Run, play, steps_at
from testing.rekeying_verbs import INSIDE, OUTSIDE, VERBS, reencryption
from testing.tables import KEYRING, customers, write

_ROUNDS, _QUICK_ROUNDS = 8_000, 32
#: Rounds of a piece.
_A_PIECE = 200
#: In one of so many rounds a run is killed, before it has made so many steps.
_KILLED, _LONGEST_LIFE = 3, 60
_DATA = "x.parquet"
#: What others see, and what sees others.
_STEPS: tuple[tuple[Any, str], ...] = (
    (fcntl, "flock"),
    *((os, name) for name in ("link", "rename", "unlink", "fsync", "pwritev", "ftruncate")),
    *(
        (home, name)
        for home, name in (
            (open_folder, "exchange_names"),
            (dispatch, "open_local"),
            (local.LocalFile, "_read_sibling"),
            (local.LocalFile, "check_unchanged"),
        )
        if hasattr(home, name)
    ),
)
Files = dict[str, bytes]


#: What another program does -> how the file is afterwards.
OTHERS = {"another program removes it": "removed", "another program replaces it": "replaced"}


class Lake:
    """The files that rounds start with, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lake"
        self.path = self._folder / _DATA
        self.rows: pa.Table = customers(8)
        #: The rows of the file by which another program replaces it.
        self.others: pa.Table = customers(9)
        self._other = write(folder / _DATA, self.others, compression="none").read_bytes()
        self.starts = {
            "plain": self._made(None),
            "inside": self._made(INSIDE),
            "outside": self._made(OUTSIDE),
        }
        over = {f"out/{name}": content for name, content in self.starts["outside"].items()}
        self.starts["outside, over another"] = {**self._made(OUTSIDE), **over}

    def _made(self, wanted: sb.KeyPolicy | None) -> Files:
        self.prepare({})
        write(self.path, self.rows, compression="none")
        if wanted is not None:
            sb.reencrypt(self.path, policy=wanted, keys=KEYRING)
        return self.files()

    def prepare(self, files: Files) -> None:
        """Make the folder what it is at the start of a round."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        for name, content in files.items():
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / name).write_bytes(content)

    def work(self, name: str) -> Callable[[], Any]:
        """A verb on the file, or what another program does to it."""
        if name in VERBS:
            return lambda: VERBS[name](self.path)
        return getattr(self, f"_{OTHERS[name]}")  # type: ignore[no-any-return]

    def _removed(self) -> str:
        self.path.unlink(missing_ok=True)
        return "removed"

    def _replaced(self) -> str:
        # Beside the lake: a run that is killed leaves it there.
        new = self._folder.with_name(f"of another program, {threading.get_ident()}")
        new.write_bytes(self._other)
        new.rename(self.path)
        return "replaced"

    def files(self) -> Files:
        """All files of the folder, hidden ones too."""
        every = (path for path in self._folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self._folder)): path.read_bytes() for path in every}

    def wrong(self, *, is_killed: bool, others: Set[str] = frozenset()) -> str | None:
        """What is wrong with the files, and with what the next run makes of them.

        ``others`` is what another program has done meanwhile.
        """
        if not self.path.exists() and "removed" not in others:
            return "the file is gone"
        if self.path.exists() and others == {"removed"}:
            return "the file came back"
        places = [path for path in (self.path, self._folder / "out" / _DATA) if path.exists()]
        for path in places:
            try:
                found = sb.read_table(path, keys=KEYRING)
            except sb.SecureBloomError as error:
                return f"{path.relative_to(self._folder)} does not open: {error}"
            # A run into the folder "out" may have read the file before or after.
            wanted = [self.others] if others and path == self.path else [self.rows, self.others]
            if not any(map(found.equals, wanted)):
                return f"{path.relative_to(self._folder)} has other rows"
        hidden = [name for name in self.files() if "secure-bloom" in name]
        if hidden and not is_killed:
            return f"{hidden} stay"
        return next(filter(None, map(self._after_the_next_run, places)), None)

    def _after_the_next_run(self, path: Path) -> str | None:
        report = reencryption(OUTSIDE)(path)
        if report.failed:
            return f"the next run fails: {report.failed[0].error}"
        wanted = {_DATA, key_material_name(_DATA)}
        found = {it.name for it in path.parent.iterdir() if it.is_file()}
        if found != wanted:
            return f"the next run leaves {sorted(found)}"
        material = json.loads((path.parent / key_material_name(_DATA)).read_text())
        if len(material) != len(("footer", "email")):
            return f"the next run leaves {len(material)} references"
        return None


class Rounds:
    """Rounds with one seed each, and what came of them."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._mixes = list(
            itertools.product(
                lake.starts,
                [
                    mix
                    for runs in (2, 3)
                    for mix in itertools.combinations_with_replacement((*VERBS, *OTHERS), runs)
                    if not OTHERS.keys() >= set(mix)
                ],
            )
        )
        #: Answers of runs -> how many.
        self.answers: Counter[str] = Counter()
        self.steps = 0

    def play(self, seed: int) -> str | None:
        """Play the round of a seed; what went wrong."""
        chance = random.Random(seed)
        start, mix = self._mix(seed, chance)
        self._lake.prepare(self._lake.starts[start])
        lives: list[int | None] = [None] * len(mix)
        if seed % _KILLED == 0:
            lives[0] = chance.randrange(_LONGEST_LIFE)
        runs = play(list(map(self._lake.work, mix)), chance, lives)
        for run in runs:
            if run.error is not None and not isinstance(
                run.error, KilledError | sb.SecureBloomError
            ):
                return self._told(seed, start, mix, f"an unforeseen error: {run.error!r}")
            self.answers[_answer(run.answer, run.error)] += 1
            self.steps += len(run.steps)
        is_killed = any(isinstance(it.error, KilledError) for it in runs)
        wrong = self._lake.wrong(is_killed=is_killed, others=done_by_others(runs))
        return None if wrong is None else self._told(seed, start, mix, wrong)

    def _mix(self, seed: int, chance: random.Random) -> tuple[str, Sequence[str]]:
        """Each mix once, then by chance."""
        shuffled = random.Random(0).sample(self._mixes, len(self._mixes))
        start, mix = shuffled[seed] if seed < len(shuffled) else chance.choice(self._mixes)
        return start, chance.sample(mix, len(mix))

    @staticmethod
    def _told(seed: int, start: str, mix: Sequence[str], wrong: str) -> str:
        return f"round {seed}, {start}: {' | '.join(mix)}: {wrong}"


@contextmanager
def stepping() -> Iterator[None]:
    """Have runs stop at each of their steps."""
    # Whoever waits for a lock looks again when it is its turn.
    with steps_at(_STEPS), mock.patch.object(locks.time, "sleep"):
        yield


def done_by_others(runs: Sequence[Run]) -> frozenset[str]:
    """What another program has done in a round."""
    return frozenset(it.answer for it in runs if isinstance(it.answer, str))


def _answer(report: Any, error: BaseException | None) -> str:
    if isinstance(error, KilledError):
        return "killed"
    if isinstance(report, str):
        return report
    if error is not None or report.failed:
        return "failed"
    return str(report.files[0].status)


def run(effort: Effort) -> Outcome:
    """Play rounds on each file system, in pieces of some rounds each."""
    disks = folders()
    rounds = (_QUICK_ROUNDS if effort.quick else _ROUNDS) // len(disks)
    pieces = [
        (parent, range(first, min(first + _A_PIECE, (number + 1) * rounds)))
        for number, parent in enumerate(disks.values())
        for first in range(number * rounds, (number + 1) * rounds, _A_PIECE)
    ]
    tally = in_pieces("concurrent_runs", pieces, partial(_count, effort), quick=effort.quick)
    steps = tally.counts.pop("steps")
    told = tally.counted()
    return Outcome(
        tried=(
            f"rounds of two or three runs at once on one file on {' and '.join(disks)}: reencrypt, "
            "rotate, add (replaced, in place) and --output, keys inside and outside, another "
            "program that removes or replaces the file, "
            f"the order of their {steps:,} steps by chance, a run killed in every third round; "
            f"runs: {told}; then the file opens and has its rows, or those by which it was "
            "replaced, and is not there if it was removed; the next run leaves it with the key "
            "material that it names"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def _count(effort: Effort, piece: tuple[str, range]) -> Tally:
    """Play rounds in a folder."""
    parent, seeds = piece
    with tempfile.TemporaryDirectory(dir=parent, prefix="runs-") as folder:
        played = Rounds(Lake(Path(folder)))
        with stepping():
            found = [played.play(effort.seed + seed) for seed in seeds]
    return Tally(
        trials=len(seeds),
        failures=tuple(wrong for wrong in found if wrong is not None),
        counts=played.answers + Counter(steps=played.steps),
    )
