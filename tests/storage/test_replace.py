"""A file takes the place of another: whole or not at all, and with its attributes."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.errors import (
    FileBusyError,
    FileChangedError,
    FormatError,
    PolicyError,
    UnfinishedWriteError,
)
from secure_bloom.storage import (
    append_tail,
    open_folder,
    open_input,
    remove_leftover,
    replace_tail,
)
from secure_bloom.storage.open_folder import exchange_names
from secure_bloom.storage.staged_file import StagedFile, temporary_name
from testing.storage import KEEP, NEW, OLD, TAIL, contents, replaced

Run = Callable[..., subprocess.CompletedProcess[str]]

REPLACE = """
import sys
from secure_bloom.storage import open_input, replace_tail
with open_input(sys.argv[1]) as file:
    print("opened", flush=True)
    replace_tail(file, int(sys.argv[2]), [b"N" * int(sys.argv[3])])
"""


@pytest.mark.usefixtures("staging")
def test_the_new_file_stands_alone_in_the_old_ones_place(data_file: Path) -> None:
    assert replaced(data_file) == len(NEW)
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.parametrize("keep", [0, 1, 4096, len(OLD)])
def test_any_head_can_be_kept(data_file: Path, keep: int) -> None:
    with open_input(str(data_file)) as file:
        replace_tail(file, keep, [b"!"])
    assert data_file.read_bytes() == OLD[:keep] + b"!"


@pytest.mark.parametrize("keep", [-1, len(OLD) + 1])
def test_no_more_can_be_kept_than_there_is(data_file: Path, keep: int) -> None:
    with open_input(str(data_file)) as file, pytest.raises(FormatError, match=f"keeps {keep}"):
        replace_tail(file, keep, [b"!"])
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


def test_a_tail_of_very_many_parts(data_file: Path) -> None:
    with open_input(str(data_file)) as file:
        replace_tail(file, 0, [bytes([n % 256]) for n in range(5000)])
    assert data_file.read_bytes() == bytes(n % 256 for n in range(5000))


def test_a_system_that_writes_little_at_a_time(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwritev = os.pwritev

    def three_bytes(fd: int, parts: list[memoryview], offset: int) -> int:
        return pwritev(fd, [b"".join(parts)[:3]], offset)

    monkeypatch.setattr(os, "pwritev", three_bytes)
    replaced(data_file)
    assert data_file.read_bytes() == NEW


def test_output_goes_to_a_new_folder_and_the_input_stays(data_file: Path, tmp_path: Path) -> None:
    data_file.chmod(0o640)
    output = tmp_path / "a" / "b" / "out.parquet"
    assert replaced(data_file, output=f"file://{output}") == len(NEW)
    assert contents(output.parent) == {"out.parquet": NEW}
    assert output.stat().st_mode & 0o7777 == 0o640
    assert contents(tmp_path) == {"part-0.parquet": OLD}


def test_output_may_be_on_another_file_system(data_file: Path, small_disk: Path) -> None:
    replaced(data_file, output=str(small_disk / "out.parquet"))
    assert contents(small_disk) == {"out.parquet": NEW}


def test_output_cannot_be_a_folder(data_file: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="folder"):
        replaced(data_file, output=str(tmp_path))


def test_a_relative_path_means_what_it_meant_when_it_was_opened(
    data_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data_file.parent)
    with open_input("part-0.parquet") as file:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        replace_tail(file, KEEP, TAIL)
    assert data_file.read_bytes() == NEW
    assert contents(tmp_path / "elsewhere") == {}


def test_a_name_as_long_as_names_get(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 247 + ".parquet")
    path.write_bytes(OLD)
    replaced(path)
    assert contents(tmp_path) == {path.name: NEW}


def test_a_symbolic_link_stays_and_its_target_is_replaced(data_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.parquet"
    link.symlink_to("../part-0.parquet")
    for stale in (folder / ".link.parquet.crc", tmp_path / ".part-0.parquet.crc"):
        stale.write_bytes(b"crc")
    replaced(link)
    assert link.readlink() == Path("../part-0.parquet")
    assert contents(tmp_path) == {"part-0.parquet": NEW}
    assert contents(folder) == {"link.parquet": NEW}


def test_a_file_is_replaced_behind_a_link_in_the_place_of_its_folder(
    data_file: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(".")
    data_file.with_name(".part-0.parquet.crc").write_bytes(b"crc")
    replaced(linked / data_file.name)
    linked.unlink()
    assert contents(tmp_path) == {"part-0.parquet": NEW}


@pytest.mark.usefixtures("staging")
def test_the_stale_checksum_is_gone_before_the_new_file_is_there(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = data_file.with_name(".part-0.parquet.crc")
    sidecar.write_bytes(b"crc")
    seen = []

    def watched(folder: int, one: str, other: str) -> None:
        seen.append((sidecar.exists(), data_file.read_bytes() == OLD))
        exchange_names(folder, one, other)

    monkeypatch.setattr(open_folder, "exchange_names", watched)
    replaced(data_file)
    assert seen == [(False, True)]
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(OLD + b"more"),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: (
            path.with_suffix(".x").write_bytes(OLD),
            path.with_suffix(".x").replace(path),
        ),
        lambda path: path.unlink(),
    ],
    ids=["longer", "touched", "another file", "gone"],
)
def test_a_file_changed_since_it_was_read_is_left_alone(
    data_file: Path, change: Callable[[Path], object]
) -> None:
    data_file.with_name(".part-0.parquet.crc").write_bytes(b"crc")
    with open_input(str(data_file)) as file:
        change(data_file)
        before = contents(data_file.parent)
        with pytest.raises(FileChangedError):
            replace_tail(file, KEEP, TAIL)
        assert contents(data_file.parent) == before


@pytest.mark.usefixtures("staging")
def test_a_change_during_the_copy_is_noticed_too(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_name = StagedFile.give_name

    def slow(self: StagedFile) -> None:
        give_name(self)
        data_file.write_bytes(b"another writer was here")

    monkeypatch.setattr(StagedFile, "give_name", slow)
    with pytest.raises(FileChangedError):
        replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": b"another writer was here"}


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize("call", ["fsync", "exchange_names", "fchmod", "pwritev"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_after_any_exception_the_old_file_stands_alone(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(open_folder if call == "exchange_names" else os, call, failing)
        with pytest.raises((PolicyError, KeyboardInterrupt)):
            replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


@pytest.mark.usefixtures("staging")
def test_a_file_system_without_locks(data_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with monkeypatch.context() as broken:
        broken.setattr(StagedFile, "publish", failing)
        with pytest.raises(PolicyError):
            replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": OLD}
    replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.usefixtures("staging")
def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "part-0.parquet"
    path.write_bytes(OLD * 40)
    (small_disk / ".part-0.parquet.crc").write_bytes(b"crc")
    before = contents(small_disk)
    with open_input(str(path)) as file, pytest.raises(PolicyError, match="no space left") as caught:
        replace_tail(file, file.size, [b"x" * 100])
    assert contents(small_disk) == before
    assert caught.value.hint is not None
    assert caught.value.path == str(path)


@pytest.mark.usefixtures("staging")
def test_a_file_size_limit(data_file: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (KEEP + 10, hard))
    try:
        with pytest.raises(PolicyError, match="too large"):
            replaced(data_file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


WITHOUT_O_TMPFILE = """
from secure_bloom.storage.staged_file import StagedFile
def refused(self): raise OSError
StagedFile._open_nameless = refused
"""
DYING_AT_STEP = """
import os, signal, sys
left = int(sys.argv[4])
def dying(call):
    def step(*arguments, **options):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*arguments, **options)
    return step
for name in ("fchown", "fchmod", "copy_file_range", "pwritev", "fsync", "link", "unlink", "rename"):
    setattr(os, name, dying(getattr(os, name)))
from secure_bloom.storage import open_folder
open_folder.exchange_names = dying(open_folder.exchange_names)
"""
both_stagings = pytest.mark.parametrize(
    "before", ["", WITHOUT_O_TMPFILE], ids=["nameless", "named"]
)


def test_a_disk_that_fails_behind_the_rename_is_not_said_to_have_the_old_file(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def failing_for_folders(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.ENOSPC, "no space left on device")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing_for_folders)
    with pytest.raises(UnfinishedWriteError, match="new file is in its place") as caught:
        replaced(data_file)
    assert "nothing was changed" not in f"{caught.value} {caught.value.hint}"
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize("call", ["exchange_names", "rename", "link"])
def test_a_server_that_reports_as_failed_what_it_did(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    home = open_folder if call == "exchange_names" else os
    done = getattr(home, call)
    if call == "rename":
        monkeypatch.setattr(open_folder, "exchange_names", cannot_exchange)

    def lost_answer(*arguments: Any, **options: int) -> None:
        done(*arguments, **options)
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(home, call, lost_answer)
    replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize("moment", ["create", "sync", "give_name"])
def test_a_folder_swapped_for_a_link_leads_to_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    ours, victim = tmp_path / "ours", tmp_path / "victim"
    for folder in (ours, victim):
        folder.mkdir()
        (folder / "x.parquet").write_bytes(OLD + folder.name.encode())
        (folder / ".x.parquet.crc").write_bytes(b"crc")
    before = contents(victim)
    step = getattr(StagedFile, moment)

    def swapped(self: StagedFile) -> None:
        if ours.is_dir() and not ours.is_symlink():
            ours.rename(tmp_path / "moved")
            ours.symlink_to("victim")
        step(self)

    monkeypatch.setattr(StagedFile, moment, swapped)
    with pytest.raises(FileChangedError):
        replaced(ours / "x.parquet")
    assert contents(victim) == before
    assert set(contents(tmp_path / "moved")) == set(before)


@pytest.mark.parametrize("way", ["link", "hard link", "dots"])
def test_the_output_is_not_the_input_under_another_name(data_file: Path, way: str) -> None:
    output = data_file.with_name("other")
    if way == "link":
        output.symlink_to(data_file)
    elif way == "hard link":
        output.hardlink_to(data_file)
    else:
        output = data_file.parent / "new" / ".." / data_file.name
    with pytest.raises(PolicyError, match="input under another name"):
        replaced(data_file, output=str(output))
    assert data_file.read_bytes() == OLD


def test_a_reader_that_keeps_a_lock_is_waited_for_so_long_and_no_longer(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECURE_BLOOM_LOCK_SECONDS", "0.2")
    with data_file.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with pytest.raises(FileBusyError, match=r"locked for 0.2 seconds") as caught:
            replaced(data_file)
        with open_input(str(data_file)) as file, pytest.raises(FileBusyError):
            append_tail(file, TAIL)
    assert "SECURE_BLOOM_LOCK_SECONDS" in str(caught.value.hint)
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


@pytest.mark.parametrize("seconds", ["soon", "nan", "inf", "-1"])
def test_a_wait_without_an_end_is_refused(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("SECURE_BLOOM_LOCK_SECONDS", seconds)
    with data_file.open("rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with pytest.raises(PolicyError, match="wanted a number of seconds"):
            replaced(data_file)


@both_stagings
def test_a_kill_before_any_system_call_leaves_the_old_file_or_the_new_one(
    data_file: Path, run: Run, before: str
) -> None:
    new, killed = OLD[:KEEP] + b"N" * 10, []
    for step in range(100):
        data_file.write_bytes(OLD)
        data_file.with_name(".part-0.parquet.crc").write_bytes(b"crc")
        program = before + DYING_AT_STEP + REPLACE
        if run(program, data_file, KEEP, 10, step).returncode == 0:
            break
        killed.append(data_file.read_bytes())
        if killed[-1] == new:
            # The next run finds nothing to do, and removes what the killed one left.
            remove_leftover(str(data_file))
            assert contents(data_file.parent) == {"part-0.parquet": new}
        else:
            assert killed[-1] == OLD
            replaced(data_file)
            assert contents(data_file.parent) == {"part-0.parquet": NEW}
    assert len(killed) >= 8
    assert {OLD, new} == set(killed)


KILLS = 4


@both_stagings
def test_a_kill_at_any_time_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, run: Run, before: str
) -> None:
    path = tmp_path / "x.parquet"
    old, size = os.urandom(1 << 20) * 16, 1 << 20
    new = old + b"N" * size
    for kill in range(KILLS):
        path.write_bytes(old)
        _run_and_kill(before + REPLACE, path, len(old), size, after=0.01 * kill)
        content = path.read_bytes()
        assert content in (old, new)
        assert set(contents(tmp_path)) <= {"x.parquet", temporary_name("x.parquet")}
        with open_input(str(path)) as file:
            replace_tail(file, 10, [])
        assert contents(tmp_path) == {"x.parquet": old[:10]}


def _run_and_kill(program: str, path: Path, keep: int, size: int, *, after: float) -> None:
    command = [sys.executable, "-c", program, str(path), str(keep), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(after)
        child.send_signal(signal.SIGKILL)


CONTENDER = """
import sys
from secure_bloom.errors import FileChangedError
from secure_bloom.storage import open_input, replace_tail
with open_input(sys.argv[1]) as file:
    print("opened", flush=True)
    sys.stdin.readline()
    try:
        replace_tail(file, 100, [sys.argv[2].encode() * 100])
    except FileChangedError:
        print("lost")
    else:
        print("won")
"""


class Contender:
    """A process that has opened the file, and rewrites it when told to."""

    def __init__(self, path: Path, letter: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(path), letter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdout is not None
        assert self._child.stdout.readline() == "opened\n"

    def go(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()

    def result(self, timeout: float = 60) -> str:
        return self._child.communicate(timeout=timeout)[0].strip()


def test_of_two_runs_on_one_file_one_wins_and_the_other_says_so(data_file: Path) -> None:
    contenders = [Contender(data_file, letter) for letter in "AB"]
    for contender in contenders:
        contender.go()
    said = [contender.result() for contender in contenders]
    assert sorted(said) == ["lost", "won"]
    winner = b"AB"[said.index("won")]
    assert contents(data_file.parent) == {"part-0.parquet": OLD[:100] + bytes([winner]) * 100}


def test_a_run_waits_for_the_one_before_it(data_file: Path) -> None:
    contender = Contender(data_file, "A")
    with data_file.open("rb") as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        contender.go()
        with pytest.raises(subprocess.TimeoutExpired):
            contender.result(timeout=0.5)
        assert contents(data_file.parent) == {"part-0.parquet": OLD}
        new = data_file.with_name("new")
        new.write_bytes(NEW)
        new.replace(data_file)
    assert contender.result() == "lost"
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


@pytest.mark.parametrize("links", ["with links", "without links"])
@pytest.mark.usefixtures("staging")
def test_a_file_that_must_be_new_takes_no_other_s_place(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, links: str
) -> None:
    target = data_file.with_name("new")
    if links == "without links":
        link = os.link

        def refuse(source: str, place: str, **options: int) -> None:
            if str(place) == str(target):
                raise OSError(errno.EPERM, "no hard links here")
            link(source, place, **options)

        monkeypatch.setattr(os, "link", refuse)
    with open_input(str(data_file)) as file:
        replace_tail(file, 0, [b"first"], output=str(target), must_be_new=True)
        before = contents(data_file.parent)
        assert before == {data_file.name: OLD, "new": b"first"}
        with pytest.raises(FileChangedError, match="there already"):
            replace_tail(file, 0, [b"second"], output=str(target), must_be_new=True)
    assert contents(data_file.parent) == before


def cannot_exchange(*_: object) -> None:
    raise OSError(errno.EINVAL, "invalid argument")


def test_a_file_system_that_cannot_exchange_names(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_folder, "exchange_names", cannot_exchange)
    replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


OTHERS = {
    "removed": ([lambda path: path.unlink()], {}),
    "replaced": ([lambda path: put(path, b"theirs")], {"part-0.parquet": b"theirs"}),
    "replaced twice": (
        [lambda path: put(path, b"theirs"), lambda path: put(path, b"newer")],
        {"part-0.parquet": b"newer"},
    ),
    "replaced, then removed": ([lambda path: put(path, b"theirs"), lambda path: path.unlink()], {}),
}


def put(path: Path, content: bytes) -> None:
    """Replace a file as other programs do, without a lock."""
    path.with_suffix(".tmp").write_bytes(content)
    path.with_suffix(".tmp").replace(path)


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize("others", OTHERS)
def test_what_another_program_does_right_before_the_replacement_stays_done(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    """A file that was removed came back, and one that was put there was lost."""
    steps, left = OTHERS[others]
    pending = iter(steps)
    publish = StagedFile.publish

    def late(staged: StagedFile, *over: tuple[object, ...] | None) -> None:
        next(pending)(data_file)
        publish(staged, *over)

    def exchanged(folder: int, one: str, other: str) -> None:
        exchange_names(folder, one, other)
        for step in pending:
            step(data_file)
            break

    monkeypatch.setattr(StagedFile, "publish", late)
    monkeypatch.setattr(open_folder, "exchange_names", exchanged)
    with pytest.raises(FileChangedError):
        replaced(data_file)
    assert contents(data_file.parent) == left
