# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH104, PTH108, PTH112, PTH118, PTH119
"""A new local file that takes its name all at once, or never existed.

The file is built nameless (O_TMPFILE) where the file system can, so a kill leaves nothing.  It
gets the temporary name ``.<name>.secure-bloom`` an instant before the rename, because linkat
cannot replace a file; elsewhere it carries that name from the start.  The writer holds a lock on
it for as long as it lives: a temporary file that nobody locks is a dead writer's, and the next
writer of that file removes it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from secure_bloom.errors import FileChangedError
from secure_bloom.storage.durable_writes import sync_folder
from secure_bloom.storage.locks import try_lock

_NAME_MAX = 255
#: File systems without hard links: there the writers' lock on the source is all there is.
_NO_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK}


def temporary_name(name: str) -> str:
    """The hidden name of a file under construction; Spark and ``find_files`` skip it."""
    temporary = f".{name}.secure-bloom"
    if len(os.fsencode(temporary)) <= _NAME_MAX:
        return temporary
    return f".{hashlib.sha256(os.fsencode(name)).hexdigest()}.secure-bloom"


class StagedFile:
    """A file under construction: write to ``fd``, then ``give_name``, then ``publish``."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._folder, name = os.path.split(target)
        self._temporary = os.path.join(self._folder, temporary_name(name))
        self._named = False
        self.fd = -1

    def create(self) -> None:
        """Make the empty file, after removing what a killed writer may have left."""
        if not self._remove_stale():
            raise self._busy()
        with contextlib.suppress(OSError):
            self.fd = self._open_nameless()
        if self.fd < 0:
            self.fd = self._open_named()
            self._named = True
        try_lock(self.fd)

    def give_name(self) -> None:
        """Make the content durable, and the file visible under its temporary name."""
        os.fsync(self.fd)
        if self._named:
            return
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Only with a folder's descriptor does Python follow /proc's link: open(2), O_TMPFILE.
            os.link(
                f"/proc/self/fd/{self.fd}", os.path.basename(self._temporary), dst_dir_fd=folder
            )
        except FileExistsError as exc:
            raise self._busy() from exc
        finally:
            os.close(folder)
        self._named = True

    def publish(self) -> None:
        """Put the file in the place of its target, durably."""
        os.rename(self._temporary, self._target)
        self._named = False
        sync_folder(self._folder)

    def publish_new(self) -> None:
        """Put the file where nothing stands, durably; FileChangedError where something does."""
        try:
            # Unlike a rename, a link takes no other file's place.
            os.link(self._temporary, self._target)
        except OSError as exc:
            if os.path.lexists(self._target):
                raise FileChangedError("the file is there already", path=self._target) from exc
            if exc.errno not in _NO_LINKS:
                raise
            self.publish()
            return
        os.unlink(self._temporary)
        self._named = False
        sync_folder(self._folder)

    def discard(self) -> None:
        """Leave nothing behind, whatever was done; after ``publish`` the new file stays."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        if self._named:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)
        else:
            # Ctrl-C may have come between the system call and our taking note of it.
            self._remove_stale()

    def _open_nameless(self) -> int:
        if not os.path.isdir("/proc/self/fd"):
            raise FileNotFoundError  # without /proc it could never be given its name
        return os.open(self._folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)

    def _open_named(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._temporary, flags, 0o666)
        except FileExistsError as exc:
            raise self._busy() from exc

    def _remove_stale(self) -> bool:
        """Whether the temporary name is free now: it was, or a dead writer's file was there."""
        try:
            fd = os.open(self._temporary, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return True
        try:
            if not try_lock(fd):
                return False
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)
            return True
        finally:
            os.close(fd)

    def _busy(self) -> FileChangedError:
        return FileChangedError(
            "another process is writing this file",
            hint=f"if none is, delete {os.path.basename(self._temporary)} and run again",
            path=self._target,
        )


@contextmanager
def staged_file(target: str) -> Iterator[StagedFile]:
    """A new file that is to take the place of ``target``, a real path; gone unless published."""
    staged = StagedFile(target)
    try:
        staged.create()
        yield staged
    finally:
        staged.discard()
