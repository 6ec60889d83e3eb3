# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH114, PTH116, PTH118, PTH119, PTH120
# The base class documents the methods.
# ruff: noqa: D102
"""Files of the local disk: reads with pread on one descriptor, identity, permissions."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from secure_bloom.errors import FileChangedError, FormatError, MissingPathError
from secure_bloom.storage.durable_writes import copy_head, read_all, write_all
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.locks import exclusive_lock
from secure_bloom.storage.open_folder import READ, close, open_folder_of, pread
from secure_bloom.storage.os_errors import GONE, system_errors
from secure_bloom.storage.paths import fenced_parts, local_path, name_of

# Other attributes are about the old bytes (security.ima) or belong to the kernel.
_CARRIED_XATTRS = ("user.", "system.posix_acl_access", "security.selinux")


def identity_of(status: os.stat_result) -> tuple[object, ...]:
    """Return inode, size and mtime: at least one changes when a file is replaced or written."""
    # ctime is left out: it changes with links and permissions, too, which leave the content alone.
    return ((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def identity_at(path: str) -> tuple[object, ...] | None:
    """Return the identity of the file at a path of this system, or None if there is none."""
    try:
        return identity_of(os.stat(path))
    except OSError:
        return None


def absolute_location(path: str) -> str:
    """Return the absolute path. Links in it are not resolved."""
    return path if fenced_parts(path) else os.path.abspath(local_path(path))


class LocalFile(InputFile):
    """A local file. ``location`` is its absolute path, with the symbolic links as given."""

    def __init__(self, path: str, fd: int) -> None:
        status = _regular(fd, path)
        self._fd = fd
        location = absolute_location(path)
        super().__init__(
            path=path,
            location=location,
            name=os.path.basename(location),
            size=status.st_size,
            identity=identity_of(status),
        )
        self.names = status.st_nlink

    @property
    def descriptor(self) -> int | None:
        return self._fd

    def copy_to(self, fd: int, keep: int, tail: Sequence[bytes]) -> int:
        # Inside the kernel: gigabytes of data pages never pass through this process.
        copy_head(self._fd, fd, keep)
        return write_all(fd, tail, keep)

    def carry_attributes(self, fd: int) -> None:
        """Copy the owner if permitted, then extended attributes, and last the permission bits.

        The bits come last, because chown clears some of them.
        """
        status, new = os.fstat(self._fd), os.fstat(fd)
        # Nothing is asked for that is so already: each call is a change of the inode to be synced.
        if new.st_gid != status.st_gid:
            with contextlib.suppress(PermissionError):
                os.fchown(fd, -1, status.st_gid)
                new = os.fstat(fd)
        if new.st_uid != status.st_uid:
            with contextlib.suppress(PermissionError):
                os.fchown(fd, status.st_uid, -1)
        self._carry_xattrs(fd)
        # setuid and setgid are left out: data has no use for them, and writing clears them anyway.
        mode = status.st_mode & (stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        if new.st_gid != status.st_gid:
            # Another group than the old file's may do no more than everybody.
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
        os.fchmod(fd, mode)

    def _carry_xattrs(self, fd: int) -> None:
        if not hasattr(os, "listxattr"):
            return
        # Best effort: the target's file system may have none, or not let us set them.
        with contextlib.suppress(OSError):
            for name in os.listxattr(self._fd):
                if name.startswith(_CARRIED_XATTRS):
                    with contextlib.suppress(OSError):
                        os.setxattr(fd, name, os.getxattr(self._fd, name))

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        # flock(2) does not count: the end of an inner block would release the outer one's lock.
        if self.is_locked:
            yield
            return
        with contextlib.ExitStack() as held:
            # Only the lock: an error of the block may be about another file, such as the output.
            with system_errors(self.path):
                self.is_locked = held.enter_context(exclusive_lock(self._fd))
            try:
                yield
            finally:
                self.is_locked = False

    def check_unchanged(self) -> None:
        with system_errors(self.path):
            try:
                # The name is looked at: our descriptor would go on showing a file that was
                # replaced.
                now = identity_of(os.stat(self.location))
            except FileNotFoundError as exc:
                raise FileChangedError("the file is gone", path=self.path) from exc
        if now != self.identity:
            raise FileChangedError(
                "the file was changed after it was read",
                hint="another program writes here; run again when it is done",
                path=self.path,
            )

    def close(self) -> None:
        if self._fd >= 0:
            close(self._fd)
        self._fd = -1

    def repeats(self, content: bytes, offset: int, step: int, most: int) -> int:
        size = len(content)
        with system_errors(self.path):
            for times in range(most):
                # Not read_all: a read that is short is no match.
                if pread(self._fd, size, offset + times * step) != content:
                    return times
        return most

    def read_into(self, offset: int, into: memoryview) -> None:
        self._check_range(offset, len(into))
        with system_errors(self.path):
            # Where the system reads less at once, the rest is read as ever.
            done = os.preadv(self._fd, [into], offset) if hasattr(os, "preadv") else 0
        if done < len(into):
            into[done:] = self.read_at(offset + done, len(into) - done)

    def _read(self, offset: int, length: int) -> bytes:
        with system_errors(self.path):
            return read_all(self._fd, offset, length)

    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        sibling = os.path.join(os.path.dirname(self.location), name)
        with system_errors(sibling):
            # Not os.path.lexists, to which a file that cannot be looked at is none.
            try:
                os.lstat(sibling)
            except FileNotFoundError:
                return None
            except OSError as exc:
                # No file can have this name: a long one was made longer.
                if exc.errno == errno.ENAMETOOLONG:
                    return None
                raise
            fd = os.open(sibling, READ)
            try:
                # The file's size, not the limit: pread asks for memory of the given length first.
                return read_all(fd, 0, min(limit, _regular(fd, sibling).st_size))
            finally:
                close(fd)


def _regular(fd: int, path: str) -> os.stat_result:
    """Return the system's status of an open file.

    Raises FormatError for a folder, a pipe, a device.
    """
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        raise FormatError("is a folder, not a file", path=path)
    if not stat.S_ISREG(status.st_mode):
        raise FormatError("is not a regular file", path=path)
    return status


def open_local(path: str) -> LocalFile:
    """Open a local file. Raises :class:`PolicyError` if it is missing or may not be read."""
    with system_errors(path, gone=GONE):
        # The open file is looked at: between a look by name and the opening it could be exchanged.
        fd = _open(path)
        try:
            return LocalFile(path, fd)
        except BaseException:
            close(fd)
            raise


def _open(path: str) -> int:
    if fenced_parts(path):
        with open_folder_of(path) as folder:
            return folder.open(name_of(path), READ)
    location = local_path(path)
    try:
        return os.open(location, READ)
    except FileNotFoundError as exc:
        # The name is still there, so no other program has removed the file since it was listed.
        if os.path.islink(location):
            raise MissingPathError(
                "is a link to a file that is not there",
                hint="repair the link, or remove it",
                path=path,
            ) from exc
        raise
