# File descriptors and strings, not Path objects, throughout.
"""A folder that is kept open, so that its names mean the same files all the time.

A path is looked up anew at every call, and the owner of a folder on the way can put a symbolic link
in its place between two calls.  A writer with more rights than the owner would then create, rename
or remove files somewhere else.  Hence the folder is opened once, and each name is looked up
relative to its descriptor (openat(2) and its relatives), never through a symbolic link.
"""

from __future__ import annotations

import errno
import functools
import os

from secure_bloom.storage.system_calls import (
    CLOEXEC,
    NOFOLLOW,
    NONBLOCK,
    exchange_names,
    require_writing,
)

#: Permissions of a new file: they are widened when it is known who may read it.
PRIVATE = 0o600

_EVERY_FILE = CLOEXEC | NOFOLLOW | NONBLOCK
#: No file can have such a name, or none is there.
_NO_SUCH_NAME = {errno.ENOENT, errno.ENAMETOOLONG}


class OpenFolder:
    """One folder, by its descriptor. Use it as a context manager."""

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        require_writing()
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | CLOEXEC)

    def __enter__(self) -> OpenFolder:
        return self

    def __exit__(self, *_error: object) -> None:
        close(self._fd)

    def open(self, name: str, flags: int) -> int:
        """Open a name, or create it readable by the owner alone.

        A symbolic link is an error, and a pipe does not block.
        """
        return os.open(name, flags | _EVERY_FILE, PRIVATE, dir_fd=self._fd)

    def open_nameless(self) -> int:
        """Return the descriptor of a new private file without a name.

        Raises OSError if the file system does not support this.
        """
        if not _has_descriptors():
            raise FileNotFoundError  # without /proc it could never be given its name
        return os.open(".", os.O_TMPFILE | os.O_RDWR | CLOEXEC, PRIVATE, dir_fd=self._fd)

    def status(self, name: str, *, follow: bool = False) -> os.stat_result | None:
        """Return the status of the file with this name, or None if there is none."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=follow)
        except OSError as exc:
            if exc.errno in _NO_SUCH_NAME:
                return None
            raise

    def holds(self, name: str, fd: int) -> bool:
        """Return whether the name belongs to the open file ``fd``."""
        found = self.status(name)
        return found is not None and os.path.samestat(found, os.fstat(fd))

    def give_name(self, fd: int, name: str) -> None:
        """Give a nameless file a name. Raises FileExistsError if the name is taken."""
        # Only with a folder's descriptor does Python follow /proc's link: open(2), O_TMPFILE.
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=self._fd)

    def link(self, name: str, new: str) -> None:
        """Give a file a second name. Raises FileExistsError if that name is taken."""
        # A symbolic link that someone put there would else give its target the new name.
        os.link(name, new, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)

    def rename(self, name: str, new: str) -> None:
        """Rename a file, atomically. An existing file of the new name is replaced."""
        os.rename(name, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def exchange(self, name: str, other: str) -> None:
        """Exchange two names, atomically. Raises FileNotFoundError if one of them is gone."""
        exchange_names(self._fd, name, other)

    def unlink(self, name: str) -> None:
        """Remove a name. A missing name is no error."""
        try:
            os.unlink(name, dir_fd=self._fd)
        except FileNotFoundError:
            return

    def sync(self) -> None:
        """Make the names durable by an fsync of the folder, if the file system supports it."""
        try:
            os.fsync(self._fd)
        except OSError as exc:
            # EINVAL: the file system has no fsync of a folder (fsync(2)).
            if exc.errno != errno.EINVAL:
                raise


@functools.cache
def _has_descriptors() -> bool:
    return os.path.isdir("/proc/self/fd")  # noqa: PTH112


def close(fd: int) -> None:
    """Close a descriptor, and ignore errors: Linux closes it even if it reports one.

    Nothing is lost by that, because everything written was synced before.
    """
    try:
        os.close(fd)
    except OSError:
        return
