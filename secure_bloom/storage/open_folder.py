# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH120
"""A folder that is kept open, so that its names mean the same files all the time.

A path is looked up anew at every call, and the owner of a folder on the way can put a symbolic link
in its place between two calls.  A writer with more rights than the owner would then create, rename
or remove files somewhere else.  Hence the folder is opened once, and each name is looked up
relative to its descriptor (openat(2) and its relatives), never through a symbolic link.

Some platforms lack the system calls.  Windows has no pread, no flock and no calls relative to an
open folder.  Reading works without them.  Writing needs them: locks keep two writers apart, and an
open folder keeps names from leading elsewhere between two calls.
"""

from __future__ import annotations

import errno
import functools
import os
import threading
from collections.abc import Callable

from secure_bloom.errors import PlatformError, PolicyError
from secure_bloom.storage.paths import fenced_parts, local_path, shown_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # mypy looks at Linux only

__all__ = [
    "CLOEXEC",
    "NOFOLLOW",
    "NONBLOCK",
    "READ",
    "exchange_names",
    "fcntl",
    "open_folder_of",
    "pread",
    "require_writing",
]

CLOEXEC = getattr(os, "O_CLOEXEC", 0)
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a named pipe must not wait for a writer; on files it does nothing.
NONBLOCK = getattr(os, "O_NONBLOCK", 0)
#: Without O_BINARY, Windows would change line ends and stop at the byte 0x1A.
READ = os.O_RDONLY | CLOEXEC | NONBLOCK | getattr(os, "O_BINARY", 0)

_CAN_WRITE = fcntl is not None and os.open in os.supports_dir_fd
_seeking = threading.Lock()
#: linux/fs.h
_RENAME_EXCHANGE = 2


def _seek_and_read(fd: int, length: int, offset: int) -> bytes:
    """Read as pread(2) does on systems without it: threads take turns at the file's position."""
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


pread = getattr(os, "pread", _seek_and_read)


def require_writing() -> None:
    """Raise :class:`PlatformError` if this system lacks the calls that safe writing needs."""
    if not _CAN_WRITE:
        raise PlatformError(
            "this system lacks what writing needs: flock, and calls relative to an open folder",
            hint="read here, and write on Linux or macOS (on Windows: in WSL or a container)",
        )


def exchange_names(folder: int, one: str, other: str) -> None:
    """Exchange two names of one open folder, atomically: renameat2(2) with RENAME_EXCHANGE.

    Raises FileNotFoundError if one of them is gone.  Raises OSError with ENOSYS or EINVAL if the
    system or the file system cannot do this.
    """
    call = _renameat2()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, os.fsencode(one), folder, os.fsencode(other), _RENAME_EXCHANGE):
        import ctypes

        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """Return the function of the C library, or None if the library lacks it."""
    # Loaded here, because a run that only reads needs no ctypes.
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    return getattr(library, "renameat2", None)


#: Permissions of a new file: they are widened when it is known who may read it.
PRIVATE = 0o600

_EVERY_FILE = CLOEXEC | NOFOLLOW | NONBLOCK
#: No file can have this name, or none has it.
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

    def inside(self, name: str, *, make: bool) -> OpenFolder:
        """Open a folder in this one. A symbolic link is an error."""
        try:
            return self._inside(name)
        except FileNotFoundError:
            if not make:
                raise
        try:
            os.mkdir(name, dir_fd=self._fd)
            self.sync()
        except FileExistsError:
            pass
        return self._inside(name)

    def _inside(self, name: str) -> OpenFolder:
        found = OpenFolder.__new__(OpenFolder)
        found._fd = os.open(
            name, os.O_RDONLY | os.O_DIRECTORY | CLOEXEC | NOFOLLOW, dir_fd=self._fd
        )
        return found

    def open(self, name: str, flags: int) -> int:
        """Return the descriptor of a file, which is created for the owner alone if ``flags`` ask.

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

    def give_name(self, fd: int, name: str, *, known_as: str | None = None) -> None:
        """Give an open file a name. Raises FileExistsError if the name is taken.

        ``known_as`` is the name that the file has now. It is used only on systems without /proc,
        where another file may have taken that name by now.
        """
        if known_as is not None and not _has_descriptors():
            self.link(known_as, name)
            return
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


def open_folder_of(path: str, *, make: bool = False) -> OpenFolder:
    """Open the folder of a file. With ``make``, a missing folder is created durably.

    For a path of :func:`.paths.without_links`, each folder below the root is opened by its name
    in the folder before. Raises PolicyError if one of them is a link.
    """
    parts = fenced_parts(path)
    if parts is None:
        return OpenFolder(os.path.dirname(os.path.abspath(local_path(path))))
    root, names = parts
    if ".." in names:
        raise PolicyError("the path leads out of its folder", path=shown_path(path))
    folder = OpenFolder(root)
    for name in names[:-1]:
        try:
            with folder:
                folder = folder.inside(name, make=make)
        except OSError as exc:
            if exc.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise PolicyError(
                f"{name}, a folder on the way to the file, is a link or a file",
                hint="put the folder itself there: a table's files are neither written nor removed "
                "through links",
                path=shown_path(path),
            ) from exc
    return folder


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
