"""Every verb that writes, on files so small that a trial takes milliseconds.

A *scene* is a folder as it is before a verb runs, the verb, and the folder as it is afterwards.
Whatever happens on the way, each file must be the old one or the new one, byte for byte and with
its permissions; what the verb told must be true; and the next run must end well.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import secure_bloom as sb
from campaigns import delta_scenes, rekeying_scenes
from campaigns.disks import folders, writes_at_once
from campaigns.outcome import Effort
from secure_bloom import hudi, paimon
from secure_bloom.adding.in_place import append_mark
from secure_bloom.adding.report import FileAddReport
from secure_bloom.cli.verbs import cli
from secure_bloom.rekeying.rekey_report import RekeyedFile
from secure_bloom.storage import append
from secure_bloom.storage.staged_file import StagedFile
from testing.tables import KEYRING, Mode, customers, write

#: Name below the folder -> content and permission bits.
Files = dict[str, tuple[bytes, int]]
_MODE = 0o640
_ALL = slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a verb said of its work."""

    status: str  # "done", "failed" (as it was), "unfinished" (either), or of an unforeseen error
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A verb and the files that it works on; ``between`` are contents it may leave besides.

    ``may_tear`` where a kill may leave the old file with a part of the new bytes behind it, which
    the next run mends: an append without direct writes.
    """

    name: str
    run: Callable[[Path], Told]
    start: Files
    end: Files = field(default_factory=dict)
    between: frozenset[bytes] = frozenset()
    setting: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext
    may_tear: bool = False

    def play(self, folder: Path) -> Told:
        """Run the verb; what it told, an error that nobody foresaw too."""
        try:
            return self.run(folder)
        except sb.UnfinishedWriteError as error:
            return Told(status="unfinished", text=str(error))
        except sb.SecureBloomError as error:
            return Told(status="failed", text=f"{error} {error.hint}")
        except OSError as error:
            # The command line takes one without a file's name for its own stdout's.
            status = "failed" if error.filename is None else "unforeseen"
            return Told(status=status, text=repr(error))
        except Exception as error:
            return Told(status="unforeseen", text=repr(error))

    def prepare(self, folder: Path) -> None:
        """Make the folder what it is at the start."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, (content, mode) in self.start.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            path.chmod(mode)

    def wrong(self, folder: Path, told: Told | None) -> str | None:
        """What is wrong in the folder, or with what was told; ``told`` is None after a kill."""
        now = files_in(folder)
        for name in {*self.start, *self.end, *now}:
            old, new, found = self.start.get(name), self.end.get(name), now.get(name)
            if found not in (old, new) and not self._may_be(name, found, told):
                return f"{name} is neither the old file nor the new one: {_told(found)}"
        unopened = self._unopened(now)
        if unopened:
            return unopened
        changed = any(
            now.get(name) == new != self.start.get(name) for name, new in self.end.items()
        )
        if has_stale_crc(now, self.start):
            return "a stale .crc stands beside the new file"
        if told is None or told.status == "unfinished":
            return None
        if told.status == "unforeseen":
            return f"an unforeseen error: {told.text}"
        now = {name: it for name, it in now.items() if not _was_cut_off(name)}
        if "stays, the next run removes it" in told.text:
            return self.not_ended(folder)
        if told.status == "done" and now != self.end:
            return f"it said that it was done, and left {sorted(now)}"
        if told.status == "failed" and changed:
            return f"it said that it failed, and changed files: {told.text}"
        return None

    @staticmethod
    def _unopened(now: Files) -> str | None:
        contents = {name: content for name, (content, _) in now.items()}
        return rekeying_scenes.unopened(contents) or delta_scenes.lost(contents)

    def not_ended(self, folder: Path) -> str | None:
        """Run again, with nothing in the way; what is wrong then."""
        told = self.play(folder)
        if told.status != "done":
            return f"the next run failed: {told.text}"
        # What a run that did not end well had cut off is for people to look at.
        now = {name: it for name, it in files_in(folder).items() if not _was_cut_off(name)}
        return None if now == self.end else f"the next run left {_difference(now, self.end)}"

    def _may_be(self, name: str, found: tuple[bytes, int] | None, told: Told | None) -> bool:
        if found is not None and found[0] in self.between:
            return True
        if told is None and self.may_tear and found is not None and name in self.start:
            return found[0].startswith((self.start[name][0], *self.between))
        if told is None and name.endswith(".secure-bloom"):
            return True  # a kill leaves a temporary file
        if name.startswith(".run-") and told is not None:
            # The record of a run on a table that did not end well, or could not be removed.
            return told.status == "unfinished" or f"{name} stays" in told.text
        # What was cut off is kept after any bad end, and where it is told.
        is_kept = told is None or told.status != "done" or "kept in" in told.text
        return is_kept and _was_cut_off(name)


def _was_cut_off(name: str) -> bool:
    return ".secure-bloom-cut" in name


def _told(found: tuple[bytes, int] | None) -> str:
    return "none" if found is None else f"{len(found[0])} bytes, mode {found[1]:o}"


def _difference(now: Files, end: Files) -> str:
    names = [name for name in {*now, *end} if now.get(name) != end.get(name)]
    return ", ".join(f"{name} ({_told(now.get(name))})" for name in sorted(names))


def files_in(folder: Path) -> Files:
    """All files below the folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def has_stale_crc(now: Mapping[str, object], start: Mapping[str, object]) -> bool:
    """Whether a .crc is left of a file that is no longer as it was."""
    found = (name.rpartition("/") for name in now if name.endswith(".crc"))
    data = (f"{folder}{slash}{name[1:].removesuffix('.crc')}" for folder, slash, name in found)
    return any(now.get(name) != start.get(name) for name in data)


def scenes(
    folder: Path,
    *,
    rows: int = 40,
    fpp: float = 0.1,
    only: Sequence[str] = (),
    share: slice = _ALL,
) -> Iterator[Scene]:
    """All of them, or of those that begin with a word of ``only`` a share.

    ``folder`` is a place to make their files in, of so many rows.  The smaller the false positive
    probability, the larger the filters.
    """
    plays = (play for play in _plays(folder, rows, fpp) if play[0].startswith(tuple(only) or ""))
    for name, start, run, setting in islice(plays, share.start, share.stop, share.step):
        is_direct = setting is not _without_direct_writes and writes_at_once(folder)
        scene = Scene(
            name=name,
            run=run,
            start=start,
            setting=setting,
            between=_whole_parts(name, start),
            may_tear="--in-place" in name and not is_direct,
        )
        with setting():
            scene.prepare(folder / "scene")
            told = scene.play(folder / "scene")
        if told.status != "done":
            raise AssertionError(f"{name} does not work at all: {told}")
        end = files_in(folder / "scene")
        yield replace(scene, end=end, between=scene.between | rekeying_scenes.between(start, end))


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneOnDisk:
    """A scene, the kind of the file system on which it is played, and a folder there."""

    scene: Scene
    disk: str
    parent: str

    def __str__(self) -> str:
        return f"{self.scene.name} on {self.disk}"

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for the scene, in its setting."""
        with (
            tempfile.TemporaryDirectory(dir=self.parent, prefix="scene-") as folder,
            same_nonces(),
            self.scene.setting(),
        ):
            yield Path(folder, "scene")


def scenes_on_disks(effort: Effort, *, rows: int = 40) -> list[SceneOnDisk]:
    """Each scene of the effort on each file system; in a quick run on one of them."""
    found = []
    disks = folders()
    for number, (disk, parent) in enumerate(disks.items()):
        share = effort.share(number, len(disks))
        with tempfile.TemporaryDirectory(dir=parent, prefix="scenes-") as folder, same_nonces():
            every = scenes(Path(folder), rows=rows, only=effort.scenes, share=share)
            found += [SceneOnDisk(scene=it, disk=disk, parent=parent) for it in every]
    return found


Play = tuple[str, Files, Callable[[Path], Told], Callable[[], Any]]


def _plays(folder: Path, rows: int, fpp: float) -> Iterator[Play]:
    plain, encrypted, signed = (
        _table(folder, mode, rows) for mode in (Mode.PLAIN, Mode.ENCRYPTED, Mode.SIGNED)
    )
    with_crc = {**plain, ".x.parquet.crc": (b"crc", _MODE)}
    none = contextlib.nullcontext
    add, add_output = partial(_add, fpp=fpp), partial(_add_output, fpp=fpp)
    add_in_place = partial(_add, fpp=fpp, in_place=True)
    yield "add", with_crc, add, none
    yield "add, encrypted", encrypted, add, none
    yield "add, no O_TMPFILE", with_crc, add, _without_nameless_files
    yield "add --in-place", with_crc, add_in_place, none
    yield "add --in-place, encrypted", encrypted, add_in_place, none
    yield "add --in-place, signed, no O_DIRECT", signed, add_in_place, _without_direct_writes
    yield "add --in-place, no O_DIRECT", with_crc, add_in_place, _without_direct_writes
    yield "add --in-place, torn", _torn(plain), add_in_place, none
    yield "add --in-place, torn, encrypted", _torn(encrypted), add_in_place, _without_direct_writes
    yield "add --output", plain, add_output, none
    over = {**plain, "out/x.parquet": (b"older", 0o600), "out/.x.parquet.crc": (b"crc", _MODE)}
    yield "add --output over a file", over, add_output, none
    outside = rekeying_scenes.over_keys_outside(folder, plain)
    yield "add --output over a file, keys outside", outside, add_output, none
    yield "hudi add", with_crc, _hudi, none
    yield "hudi add --in-place, encrypted", encrypted, _hudi_in_place, none
    yield "paimon build", plain, _paimon, none
    yield "paimon build, no O_TMPFILE", plain, _paimon, _without_nameless_files
    yield "paimon build over an index", {**plain, **_index(folder, plain)}, _paimon, none
    for name, start, verb in rekeying_scenes.plays(folder, plain):
        yield name, start, partial(_rekey, verb=verb), none
    delta, at_one_moment = delta_scenes.table(plain), delta_scenes.at_one_moment
    yield "add to a Delta table", delta, partial(_add_to_delta, fpp=fpp), at_one_moment
    for name, files, verb in rekeying_scenes.plays_on_tables(folder, plain):
        yield name, delta_scenes.table(files), partial(_rekey, verb=verb), at_one_moment
    yield "read --output", plain, _read("csv"), none
    rows = {**plain, "rows.parquet": (b"older", 0o604)}
    yield "read --output over a file", rows, _read("parquet"), none
    yield "read --output, no O_TMPFILE", plain, _read("csv"), _without_nameless_files


def _table(folder: Path, mode: Mode, rows: int) -> Files:
    path = write(folder / "made.parquet", customers(rows), mode, compression="none")
    content = path.read_bytes()
    path.unlink()
    return {"x.parquet": (content, _MODE)}


def _torn(files: Files) -> Files:
    content, mode = files["x.parquet"]
    return {"x.parquet": (content + append_mark(len(content)) + bytes(5000), mode)}


def _whole_parts(name: str, start: Mapping[str, tuple[bytes, int]]) -> frozenset[bytes]:
    """Of a torn file the whole one in front."""
    if "torn" not in name:
        return frozenset()
    content, _ = start["x.parquet"]
    return frozenset({content[: content.rindex(b"secure-bloom append ")]})


def _index(folder: Path, files: Files) -> Files:
    path = folder / "x.parquet"
    path.write_bytes(files["x.parquet"][0])
    paimon.build_index(path, ["city"])
    index = folder / "x.parquet.index"
    content = index.read_bytes()
    path.unlink()
    index.unlink()
    return {index.name: (content, _MODE)}


def _of_report(file: FileAddReport | RekeyedFile) -> Told:
    if file.status != "failed":
        return Told(status="done", text="; ".join(file.notes))
    unfinished = ("is in its place", "could not take back")
    is_unfinished = any(words in (file.error or "") for words in unfinished)
    status = "unfinished" if is_unfinished else "failed"
    return Told(status=status, text=f"{file.error} {file.hint}")


def _add(folder: Path, *, fpp: float, **options: Any) -> Told:
    columns = dict.fromkeys(("email", "id"), sb.BloomFilterOptions(fpp=fpp))
    report = sb.add_bloom_filters(
        str(folder / "x.parquet"), columns=columns, keys=KEYRING, **options
    )
    return _of_report(report.files[0])


def _add_output(folder: Path, *, fpp: float) -> Told:
    return _add(folder, fpp=fpp, output=folder / "out")


def _add_to_delta(folder: Path, *, fpp: float) -> Told:
    report = delta_scenes.add(folder, fpp)
    told = _of_report(report.files[0])
    return replace(told, text="; ".join((told.text, *report.notes)))


def _hudi(folder: Path, **options: Any) -> Told:
    report = hudi.add_record_key_filter(
        str(folder / "x.parquet"), column="email", keys=KEYRING, **options
    )
    return _of_report(report.files[0])


def _hudi_in_place(folder: Path) -> Told:
    return _hudi(folder, in_place=True)


def _rekey(folder: Path, *, verb: rekeying_scenes.Verb) -> Told:
    report = verb(folder)
    told = _of_report(report.files[0])
    return replace(told, text="; ".join((told.text, *report.notes)))


def _paimon(folder: Path) -> Told:
    paimon.build_index(folder / "x.parquet", ["id"])
    return Told(status="done")


def _read(form: str) -> Callable[[Path], Told]:
    def run(folder: Path) -> Told:
        output = folder / f"rows.{form}"
        arguments = [str(folder / "x.parquet"), "--format", form, "--output", str(output)]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main(["read", *arguments], prog_name="secure-bloom", standalone_mode=False)
        return Told(status="done")

    return run


@contextmanager
def _without_nameless_files() -> Iterator[None]:
    refusal = OSError(errno.EOPNOTSUPP, "no nameless files here")
    with mock.patch.object(StagedFile, "_open_nameless", side_effect=refusal):
        yield


@contextmanager
def _without_direct_writes() -> Iterator[None]:
    with mock.patch.object(append, "write_at_once", return_value=False):
        yield


@contextmanager
def same_nonces() -> Iterator[None]:
    """Two runs write the same bytes; no more than that is wanted of these keys."""
    with mock.patch.object(os, "urandom", lambda size: bytes(size)):
        yield
