"""New bytes after the end of a file: all of them, or the old file again."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.errors import FileChangedError, FormatError, PolicyError, UnfinishedWriteError
from secure_bloom.storage import (
    APPEND_ALIGNMENT,
    append_tail,
    open_input,
    remove_kept,
    replace_tail,
    truncate_to,
)
from secure_bloom.storage import append as appending
from testing.storage import OLD, TAIL, contents

Run = Callable[..., subprocess.CompletedProcess[str]]
ADDED = OLD + b"".join(TAIL)


def appended(path: Path) -> int:
    with open_input(str(path)) as file:
        return append_tail(file, TAIL)


def test_the_tail_follows_the_old_bytes_in_the_same_file(data_file: Path) -> None:
    data_file.with_name(".part-0.parquet.crc").write_bytes(b"crc")
    inode = data_file.stat().st_ino
    assert appended(data_file) == len(ADDED)
    assert contents(data_file.parent) == {"part-0.parquet": ADDED}
    assert data_file.stat().st_ino == inode


def test_through_a_symbolic_link(data_file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to(data_file)
    (tmp_path / ".part-0.parquet.crc").write_bytes(b"crc")
    appended(link)
    assert link.is_symlink()
    assert contents(tmp_path) == {"part-0.parquet": ADDED, "link.parquet": ADDED}


def test_a_file_with_another_name_is_not_appended_to(data_file: Path) -> None:
    """The other name may be a backup, or a file of a table whose log has its size."""
    data_file.with_name("backup").hardlink_to(data_file)
    with pytest.raises(PolicyError, match="hard links"):
        appended(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": OLD, "backup": OLD}


def test_a_file_changed_since_it_was_read_is_left_alone(data_file: Path) -> None:
    data_file.with_name(".part-0.parquet.crc").write_bytes(b"crc")
    with open_input(str(data_file)) as file:
        data_file.write_bytes(OLD[:-1])
        before = contents(data_file.parent)
        with pytest.raises(FileChangedError):
            append_tail(file, TAIL)
        assert contents(data_file.parent) == before


def test_of_an_append_and_a_replace_the_second_loses(data_file: Path) -> None:
    with open_input(str(data_file)) as first, open_input(str(data_file)) as second:
        append_tail(first, TAIL)
        with pytest.raises(FileChangedError):
            replace_tail(second, 10, TAIL)
        with pytest.raises(FileChangedError):
            append_tail(second, TAIL)
    assert data_file.read_bytes() == ADDED


def test_a_full_disk_is_noticed_before_the_first_byte(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> int:
        raise AssertionError("a byte was written")

    monkeypatch.setattr(appending, "write_all", never)
    _fill_and_append(small_disk)


def test_a_full_disk_that_cannot_be_asked(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "_require_room", lambda *_: None)
    _fill_and_append(small_disk)


def _fill_and_append(folder: Path) -> None:
    path = folder / "part-0.parquet"
    path.write_bytes(OLD * 40)
    before, free = contents(folder), os.statvfs(folder).f_bfree
    with open_input(str(path)) as file:
        with pytest.raises(PolicyError, match="no space left"):
            append_tail(file, [b"x" * (1 << 20)])
        assert contents(folder) == before
        assert os.statvfs(folder).f_bfree == free
        file.check_unchanged()


def test_a_file_size_limit_in_mid_write(data_file: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(OLD) + 10, hard))
    try:
        with pytest.raises(PolicyError, match="too large"):
            appended(data_file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(data_file.parent) == {"part-0.parquet": OLD}


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_an_exception_after_the_write_takes_it_back(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fsync, calls = os.fsync, []

    def failing_once(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 1:
            raise error
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing_once)
    with open_input(str(data_file)) as file:
        with pytest.raises((PolicyError, KeyboardInterrupt)):
            append_tail(file, TAIL)
        assert contents(data_file.parent) == {"part-0.parquet": OLD}
        file.check_unchanged()


def test_an_append_that_cannot_be_taken_back_says_so(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, "I/O error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        with pytest.raises(UnfinishedWriteError, match="could not be removed") as caught:
            appended(data_file)
    assert "nothing was changed" not in f"{caught.value} {caught.value.hint}"


def test_a_short_read_does_not_put_the_tail_over_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"o" * 5000)
    tail = [b"n" * (8192 - 5000)]
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: pread(fd, min(length, 100), at))
    with open_input(str(path)) as file:
        append_tail(file, tail)
    assert path.read_bytes() == b"o" * 5000 + tail[0]


def test_a_file_cut_by_another_program_is_neither_written_nor_lengthened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"o" * 5000)
    require_room = appending._require_room

    def cut(fd: int, length: int) -> None:
        require_room(fd, length)
        os.truncate(path, 4200)

    monkeypatch.setattr(appending, "_require_room", cut)
    with open_input(str(path)) as file, pytest.raises(FileChangedError, match="ended at 4200"):
        append_tail(file, [b"n" * (8192 - 5000)])
    assert contents(tmp_path) == {"x.parquet": b"o" * 4200}


def test_without_direct_writes_the_magic_comes_when_all_else_is_on_the_disk(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, bytes]] = []
    fsync, pwritev = os.fsync, os.pwritev

    def synced(fd: int) -> None:
        calls.append(("fsync", b""))
        fsync(fd)

    def written(fd: int, parts: list[memoryview], offset: int) -> int:
        calls.append(("write", b"".join(parts)))
        return pwritev(fd, parts, offset)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "pwritev", written)
    with open_input(str(data_file)) as file:
        append_tail(file, [b"the mark", b"filters", b"footer", b"PAR1"])
    writes = [("write", part) for part in (b"the mark", b"filtersfooter", b"PAR1")]
    assert [call for call in calls if call[1]] == writes
    assert all(calls[calls.index(write) + 1][0] == "fsync" for write in writes)


DYING_AT_THE_FIRST_WRITE = """
import os, signal
os.pwritev = lambda *a: os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_append_leaves_no_room_reserved_behind_the_end(data_file: Path, run: Run) -> None:
    before = data_file.stat().st_blocks
    killed = run(DYING_AT_THE_FIRST_WRITE + APPEND, data_file, 1 << 20)
    assert killed.returncode == -signal.SIGKILL
    assert data_file.read_bytes() == OLD
    assert data_file.stat().st_blocks == before


APPEND = """
import sys
from secure_bloom.storage import open_input, append_tail
with open_input(sys.argv[1]) as file:
    print("opened", flush=True)
    append_tail(file, [b"N" * int(sys.argv[2])])
"""


def test_a_kill_leaves_the_old_bytes_and_the_way_back(tmp_path: Path) -> None:
    path, size = tmp_path / "x.parquet", 64 << 20
    path.write_bytes(OLD)
    _append_and_kill_in_mid_write(path, size)
    content = path.read_bytes()
    torn = content[len(OLD) :]
    assert content[: len(OLD)] == OLD
    assert torn == b"N" * len(torn)
    with open_input(str(path)) as file:
        kept = truncate_to(str(path), len(OLD), file.identity)
    assert Path(kept).read_bytes() == torn
    remove_kept(kept)
    assert contents(tmp_path) == {"x.parquet": OLD}


def _append_and_kill_in_mid_write(path: Path, size: int) -> None:
    command = [sys.executable, "-c", APPEND, str(path), str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        while path.stat().st_size == len(OLD) and child.poll() is None:
            pass
        child.send_signal(signal.SIGKILL)


def test_truncate_refuses_another_file_and_more_than_there_is(data_file: Path) -> None:
    with open_input(str(data_file)) as file:
        with pytest.raises(FormatError, match="cannot be cut"):
            truncate_to(str(data_file), len(OLD) + 1, file.identity)
        data_file.write_bytes(OLD + b"new")
        with pytest.raises(FileChangedError):
            truncate_to(str(data_file), 10, file.identity)
    assert data_file.read_bytes() == OLD + b"new"


@pytest.mark.parametrize("call", ["open", "pwritev"])
@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
def test_the_file_system_may_have_no_direct_writes(
    data_file: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """EINVAL says that there are none: then the tail is written in another way."""
    genuine = getattr(os, call)

    def refusing(target: str | int, given: Any, *rest: int, **options: int) -> object:
        is_flags = isinstance(given, int)
        is_direct = (
            given & os.O_DIRECT if is_flags else any(isinstance(part, mmap.mmap) for part in given)
        )
        if is_direct:
            raise OSError(code, os.strerror(code))
        return genuine(target, given, *rest, **options)

    monkeypatch.setattr(os, call, refusing)
    tail = b"x" * (APPEND_ALIGNMENT - len(OLD) % APPEND_ALIGNMENT)
    with open_input(str(data_file)) as file:
        if code == errno.EINVAL:
            assert append_tail(file, [tail]) == len(OLD) + len(tail)
        else:
            with pytest.raises(PolicyError, match="input/output error"):
                append_tail(file, [tail])
    wanted = OLD + tail if code == errno.EINVAL else OLD
    assert contents(data_file.parent) == {"part-0.parquet": wanted}


def test_bytes_that_cannot_be_kept_are_not_cut_off(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with open_input(str(data_file)) as file:
        monkeypatch.setattr(appending, "write_all", full)
        with pytest.raises(PolicyError, match="no space left"):
            truncate_to(str(data_file), 100, file.identity)
    assert contents(data_file.parent) == {data_file.name: OLD}
