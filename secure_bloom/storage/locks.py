"""Locks between runs of this package: flock(2), which the kernel releases when a process dies."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from secure_bloom.errors import FileBusyError, PolicyError
from secure_bloom.storage.open_folder import fcntl, require_writing

#: A writer waits this number of seconds for another one.
LOCK_SECONDS = 60.0
#: The environment variable that says otherwise.
LOCK_VARIABLE = "SECURE_BLOOM_LOCK_SECONDS"

# Some network file systems have no flock, or none on files opened for reading.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.25


@contextmanager
def exclusive_lock(fd: int) -> Iterator[bool]:
    """Wait for the lock and hold it. Raises :class:`FileBusyError` if it is not free in time.

    Yields False if the file system has no locks.  Without locks, only the check that the file is
    unchanged protects two writers from each other.
    """
    require_writing()
    locked = _lock_in_time(fd)
    try:
        yield locked
    finally:
        if locked:
            # Closing the file gives the lock back at the latest.
            with contextlib.suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_UN)


def try_lock(fd: int) -> bool | None:
    """Take the lock if it is free. Return False if it is taken, None if there are no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _lock_in_time(fd: int) -> bool:
    """Take the lock. Return False if the file system has no locks.

    The wait has a limit, because any process that may read a file can lock it for ever.
    """
    # Asked again and again, because flock(2) that waits has no limit of time but an alarm, and
    # alarms belong to the main thread.
    deadline, pause = None, _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            if deadline is None:
                deadline = time.monotonic() + _patience()
            if time.monotonic() > deadline:
                raise _busy() from exc
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except OSError as exc:
            if exc.errno not in _NO_LOCKS:
                raise
            return False
        else:
            return True


def _patience() -> float:
    text = os.environ.get(LOCK_VARIABLE, str(LOCK_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # No time is later than a deadline that is not a number: the wait would have no end.
    if not 0 <= seconds < math.inf:
        raise PolicyError(f"{LOCK_VARIABLE} is {text!r}, wanted a number of seconds")
    return seconds


def _busy() -> FileBusyError:
    return FileBusyError(
        f"another process has kept this file locked for {_patience():g} seconds",
        hint=f"run again when it is done ({LOCK_VARIABLE} sets how long to wait), or find it: "
        "lslocks",
    )
