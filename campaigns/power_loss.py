"""A power cut behind any write or sync of a writing verb: an error or the right rows.

The states that a disk may be left in are those of `disk_model`.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from campaigns import delta_scenes, rekeying_scenes
from campaigns.disk_model import Disk, FileState, Recorder
from campaigns.outcome import Effort, Outcome
from campaigns.pieces import Tally, in_pieces
from campaigns.scenes import Files, Scene, has_stale_crc, same_nonces, scenes
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.storage import open_input
from testing.tables import KEYRING

#: Random subsets of lost pages for each moment, beside those that leave out or keep a single page.
_SAMPLES, _QUICK_SAMPLES = 17_500, 10
#: Of so many files that cannot be opened one is also read by every reader, and mended.
_LOOK_CLOSER = 500
#: Enough for several pages of filters.
_ROWS, _FPP = 1500, 1e-9


def run(effort: Effort) -> Outcome:
    """All scenes; only what they write in place can be found torn."""
    with tempfile.TemporaryDirectory(prefix="power-") as folder, same_nonces():
        every = [*scenes(Path(folder), rows=_ROWS, fpp=_FPP, only=effort.scenes)]
        if effort.quick:
            every = [scene for scene in every if "encrypted" not in scene.name]
        # Those that write in place have by far the most states.
        every.sort(key=lambda scene: "--in-place" not in scene.name)
        tally = in_pieces("power_loss", every, partial(_count, effort), quick=effort.quick)
    return Outcome(
        tried=(
            "a power cut behind each write, sync and rename of writing verbs, by a model of the "
            "disk: names that were not synced, subsets of pages that were not synced; then the "
            "old file, the new one, an error, or the right rows, by our reader and pyarrow; torn "
            "files are mended by the next run"
        ),
        trials=tally.trials,
        failures=tally.failures,
    )


def _count(effort: Effort, scene: Scene) -> Tally:
    """Cut the power at each moment of a scene."""
    chance = random.Random(f"{effort.seed} {scene.name}")
    with tempfile.TemporaryDirectory(prefix="power-") as folder:
        judge = Judge(scene, Path(folder), chance, quick=effort.quick)
        with scene.setting():
            judge.record(Path(folder, "scene"))
    failures = tuple(f"{scene.name}: {failure}" for failure in judge.failures)
    return Tally(trials=len(judge.seen), failures=failures)


class Judge:
    """Looks at every state that a run of a scene may leave."""

    def __init__(self, scene: Scene, folder: Path, chance: random.Random, *, quick: bool) -> None:
        self._scene = scene
        self._chance = chance
        self._samples = _QUICK_SAMPLES if quick else _SAMPLES
        self._other = folder / "found.parquet"
        self.seen: set[int] = set()
        self._rows = _rows_of(scene.end, folder)
        self.failures: list[str] = []

    def record(self, folder: Path) -> None:
        """Run the verb, and look at what a power cut behind each of its calls leaves."""
        self._scene.prepare(folder)
        disk = Disk()
        for path in filter(Path.is_file, folder.rglob("*")):
            content = path.read_bytes()
            inode = path.stat().st_ino
            disk.names[str(path)] = inode
            disk.files[inode] = FileState(synced=content, current=content)
        recorder = Recorder(disk, lambda disk: self._cut(disk, folder))
        with recorder.watching():
            self._scene.play(folder)

    def _cut(self, disk: Disk, folder: Path) -> None:
        for found in disk.after_a_power_cut(self._chance, self._samples):
            state = hash(frozenset(found.items()))
            if state in self.seen:
                continue
            self.seen.add(state)
            files = {str(Path(path).relative_to(folder)): found[path] for path in found}
            self.failures += self._wrong(files)

    def _wrong(self, files: dict[str, bytes]) -> Iterator[str]:
        start, end = _contents(self._scene.start), _contents(self._scene.end)
        for name in {*start, *end}:
            content = files.get(name)
            known = {start.get(name), end.get(name), None, *self._scene.between}
            if content not in known:
                yield from self._wrong_content(name, content)
        unopened = rekeying_scenes.unopened(files)
        if unopened:
            yield unopened
        lost = delta_scenes.lost(files)
        if lost:
            yield lost
        if has_stale_crc(files, start):
            yield "a stale .crc stands beside the new file"

    def _wrong_content(self, name: str, content: bytes) -> Iterator[str]:
        if "--in-place" not in self._scene.name:
            yield f"{name} is neither the old file nor the new one"
            return
        self._other.write_bytes(content)
        if _opens(self._other) or len(self.seen) % _LOOK_CLOSER == 0:
            yield from self._wrong_rows()
            yield from self._not_mended(name, content)

    def _wrong_rows(self) -> Iterator[str]:
        """By two readers: an error, or the rows; and a value is found by its filter."""
        path = str(self._other)
        try:
            if not sb.read_table(path, keys=KEYRING).equals(self._rows):
                yield "our reader gives other rows"
            for value in self._rows["email"].to_pylist()[::97]:
                where = [("email", "=", value)]
                if sb.read_table(path, where=where, keys=KEYRING).num_rows != 1:
                    yield "our reader does not find a row by its filter"
        except sb.SecureBloomError:
            pass
        try:
            if not pq.read_table(path).equals(self._rows):
                yield "pyarrow gives other rows"
        except (OSError, pa.ArrowException):
            pass

    def _not_mended(self, name: str, content: bytes) -> Iterator[str]:
        folder = self._other.parent / "mended"
        self._scene.prepare(folder)
        (folder / name).write_bytes(content)
        told = self._scene.play(folder)
        if told.status != "done":
            yield f"the next run does not mend it: {told.text}"
        elif (folder / name).read_bytes() != self._scene.end[name][0]:
            yield "the next run leaves another file"


def _contents(files: Files) -> dict[str, bytes]:
    return {name: content for name, (content, _) in files.items()}


def _rows_of(files: Files, folder: Path) -> pa.Table:
    """The rows of the data file, with what stands beside it but a log that names others."""
    for name, content in _contents(files).items():
        if name.startswith("_delta_log"):
            continue
        (folder / "whole" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "whole" / name).write_bytes(content)
    rows = sb.read_table(str(folder / "whole" / "x.parquet"), keys=KEYRING)
    shutil.rmtree(folder / "whole")
    return rows


def _opens(path: Path) -> bool:
    """Whether the file ends in a footer that can be read."""
    try:
        with open_input(str(path)) as file:
            read_tail(file)
    except sb.SecureBloomError:
        return False
    return True
