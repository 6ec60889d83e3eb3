"""Locks between runs of this package: flock(2), which the kernel releases when a process dies."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

# Some network file systems have no flock, or none on files opened for reading.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL}


@contextmanager
def exclusive_lock(fd: int) -> Iterator[None]:
    """Wait for the lock and hold it.

    Without locks in the file system, the check that the file is unchanged is all there is.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as exc:
        if exc.errno not in _NO_LOCKS:
            raise
        yield
        return
    try:
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def try_lock(fd: int) -> bool:
    """Take the lock if nobody has it; ``False`` when a living process has, or nobody can know."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
