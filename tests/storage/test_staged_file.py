"""The file under a temporary name: whose it is, who may read it, and what becomes of it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from secure_bloom.errors import FileChangedError
from secure_bloom.storage import open_input, replace_tail, staged_file
from secure_bloom.storage.local import LocalFile
from secure_bloom.storage.open_folder import OpenFolder, close
from secure_bloom.storage.staged_file import NO_LINKS, StagedFile, temporary_name
from testing.storage import KEEP, NEW, OLD, contents, replaced
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
        "import os, signal\nfrom secure_bloom.storage import open_folder\n"
        "open_folder.exchange_names = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
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


class TestRaces:
    """Another writer of the same file comes between two calls of the system."""

    @pytest.fixture
    def staged(self, data_file: Path) -> Iterator[StagedFile]:
        with OpenFolder(str(data_file.parent)) as folder:
            staged = StagedFile(folder, str(data_file))
            yield staged
            if staged.fd >= 0:
                close(staged.fd)

    @pytest.fixture
    def other(self, data_file: Path) -> Path:
        """Where the other one's file stands, or will."""
        return data_file.with_name(temporary_name(data_file.name))

    @pytest.fixture
    def without_nameless_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(_: OpenFolder) -> int:
            raise OSError(errno.EOPNOTSUPP, "no nameless files")

        monkeypatch.setattr(OpenFolder, "open_nameless", refused)

    def assert_is_late(self, step: Callable[[], object]) -> None:
        with pytest.raises(FileChangedError, match="another process is writing"):
            step()

    def test_who_was_faster_to_name_the_file_has_it(self, staged: StagedFile, other: Path) -> None:
        staged.create()
        if other.exists():
            pytest.skip("the file system has no nameless files")
        other.write_bytes(b"other")
        self.assert_is_late(staged.give_name)
        assert other.read_bytes() == b"other"

    @pytest.mark.usefixtures("without_nameless_files")
    def test_who_was_faster_to_make_the_file_has_it(
        self, staged: StagedFile, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(StagedFile, "remove_stale", lambda _: other.write_bytes(b"other"))
        self.assert_is_late(staged.create)
        assert other.read_bytes() == b"other"

    @pytest.mark.usefixtures("without_nameless_files")
    def test_a_file_that_was_taken_for_a_dead_one_s(
        self, staged: StagedFile, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staged_file, "try_lock", lambda _: other.unlink())
        self.assert_is_late(staged.create)

    @pytest.mark.usefixtures("without_nameless_files")
    def test_a_file_that_another_writer_is_just_removing_is_given_up(
        self, staged: StagedFile, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        genuine = StagedFile._open_named
        cleaner: list[int] = []

        def locked_by_another(self: StagedFile) -> int:
            made = genuine(self)
            cleaner.append(os.open(other, os.O_RDONLY))
            fcntl.flock(cleaner[0], fcntl.LOCK_EX)
            return made

        monkeypatch.setattr(StagedFile, "_open_named", locked_by_another)
        # The other writer has the lock, and removes the name next: a third one may take it.
        self.assert_is_late(staged.create)
        other.unlink()
        os.close(cleaner[0])
        with other.open("wb") as third:
            fcntl.flock(third, fcntl.LOCK_EX)
            staged.discard()
            assert other.exists()

    @pytest.mark.usefixtures("without_nameless_files")
    def test_only_the_file_that_was_written_gets_the_name(
        self, staged: StagedFile, data_file: Path, other: Path
    ) -> None:
        staged.create()
        os.write(staged.fd, b"ours")
        kept = data_file.with_name("kept")
        other.rename(kept)
        other.write_bytes(b"theirs")
        data_file.unlink()
        staged.publish_if_absent()
        assert contents(data_file.parent) == {
            data_file.name: b"ours",
            kept.name: b"ours",
            other.name: b"theirs",
        }

    @pytest.mark.usefixtures("without_nameless_files")
    def test_a_new_file_is_published_although_the_disk_fails_right_after(
        self, staged: StagedFile, data_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data_file.unlink()
        staged.create()
        os.write(staged.fd, b"ours")

        def refused(*_: object) -> bool:
            raise OSError(errno.EIO, "input/output error")

        monkeypatch.setattr(OpenFolder, "holds", refused)
        staged.publish_if_absent()
        assert data_file.read_bytes() == b"ours"

    def test_a_dead_writers_file_that_someone_else_removes(
        self, staged: StagedFile, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.write_bytes(b"dead")
        genuine = OpenFolder.open

        def removed(folder: OpenFolder, name: str, flags: int) -> int:
            other.unlink()
            return genuine(folder, name, flags)

        monkeypatch.setattr(OpenFolder, "open", removed)
        staged.create()
        assert staged.fd >= 0

    def test_a_dead_writers_file_that_became_another_one(
        self, staged: StagedFile, other: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other.write_bytes(b"dead")

        def replaced(_: int) -> bool:
            other.unlink()
            other.write_bytes(b"alive")
            return True

        monkeypatch.setattr(staged_file, "try_lock", replaced)
        self.assert_is_late(staged.create)
        assert other.read_bytes() == b"alive"

    def test_without_hard_links_a_new_file_is_renamed(
        self, staged: StagedFile, data_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object) -> None:
            raise OSError(min(NO_LINKS), "no links")

        data_file.unlink()
        staged.create()
        monkeypatch.setattr(StagedFile, "_link", refused)
        staged.publish_new()
        assert contents(data_file.parent) == {data_file.name: b""}
