# File descriptors and strings, not Path objects, throughout.
"""Replace, or require, the system calls of storage that some platforms lack.

Windows has no pread, no flock and no calls relative to an open folder (openat and its relatives).
Reading works without them.  Writing needs them: locks keep two writers apart, and an open folder
keeps names from leading elsewhere between two calls.
"""

from __future__ import annotations

import errno
import functools
import os
import threading
from collections.abc import Callable

from secure_bloom.errors import PlatformError

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
    """Read like pread(2) on systems without it: threads take turns at the file's one position."""
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
