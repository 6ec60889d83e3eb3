"""The file under a temporary name: whose it is, who may read it, and what becomes of it."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from secure_bloom.errors import (
    FileChangedError,
)
from secure_bloom.storage import open_input, replace_tail
from secure_bloom.storage.local import LocalFile
from secure_bloom.storage.staged_file import temporary_name
from tests.storage.conftest import KEEP, NEW, OLD, contents, replaced
from tests.storage.test_replace import REPLACE, WITHOUT_O_TMPFILE, Run


@pytest.mark.usefixtures("staging")
def test_nobody_else_can_read_the_new_file_before_it_has_the_old_ones_permissions(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_file.chmod(0o600)
    carry_attributes, modes = LocalFile.carry_attributes, []

    def watched(self: LocalFile, fd: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        carry_attributes(self, fd)

    monkeypatch.setattr(LocalFile, "carry_attributes", watched)
    umask = os.umask(0)
    try:
        replaced(data_file)
    finally:
        os.umask(umask)
    assert modes == [0o600]


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "socket"])
def test_something_else_under_the_temporary_name_is_an_error_and_no_wait(
    data_file: Path, run: Run, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    left = data_file.with_name(temporary_name("part-0.parquet"))
    if kind == "pipe":
        os.mkfifo(left)
    elif kind == "link":
        left.symlink_to("part-0.parquet")
    elif kind == "folder":
        left.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            monkeypatch.chdir(left.parent)  # a socket's path has to be short
            listener.bind(left.name)
    done = run(REPLACE, data_file, KEEP, 10)
    assert "is taken by something that is not a file" in done.stderr
    assert left.name in done.stderr
    assert data_file.read_bytes() == OLD


DYING_BETWEEN_LINK_AND_UNLINK = (
    WITHOUT_O_TMPFILE
    + """
import os, signal
os.unlink = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
import sys
from secure_bloom.storage import open_input, replace_tail
with open_input(sys.argv[1]) as file:
    replace_tail(file, 0, [b"index"], output=sys.argv[2], must_be_new=True)
"""
)


def test_a_kill_between_link_and_unlink_does_not_lock_the_next_writer_out(
    data_file: Path, run: Run
) -> None:
    target = data_file.with_name("new")
    killed = run(DYING_BETWEEN_LINK_AND_UNLINK, data_file, target)
    assert killed.returncode == -signal.SIGKILL
    left = temporary_name("new")
    assert contents(data_file.parent) == {data_file.name: OLD, "new": b"index", left: b"index"}
    with open_input(str(target)) as file:
        replace_tail(file, 0, [b"another"])
    assert contents(data_file.parent) == {data_file.name: OLD, "new": b"another"}


def test_a_kill_between_the_temporary_name_and_the_rename(data_file: Path, run: Run) -> None:
    program = (
        "import os, signal\nos.rename = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run(program + REPLACE, data_file, KEEP, 10).returncode == -signal.SIGKILL
    left = temporary_name("part-0.parquet")
    assert set(contents(data_file.parent)) == {"part-0.parquet", left}
    assert data_file.read_bytes() == OLD
    replaced(data_file)
    assert contents(data_file.parent) == {"part-0.parquet": NEW}


def test_the_temporary_file_of_a_living_writer_is_left_alone(data_file: Path, run: Run) -> None:
    left = data_file.with_name(temporary_name("part-0.parquet"))
    with left.open("wb") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        with pytest.raises(FileChangedError, match="another process") as caught:
            replaced(data_file)
        assert left.exists()
    assert left.name in str(caught.value.hint)
    replaced(data_file)
    assert not left.exists()
