"""A permit to write: a small file that the driver of a run can take away from tasks elsewhere.

    driver   with offered_permit("lake/people") as permit:   # creates .call-<id>.secure-bloom
                 ship(permit)                                # and renews it every second
    task         with written_under(permit):                 # on any machine
                     replace_tail(file, ...)                 # asks the permit before it publishes

Spark may run a task twice, and a process that was stopped for a while continues as if nothing had
happened.  That task must not write after its run has ended.  So every change that this process
makes to a file is inside :func:`may_write`, which raises

1. RunEnded if the permit is gone, or its content is :data:`WITHDRAWN`;
2. DriverLostError unless the driver has renewed it in the last :data:`LEASE` seconds: nothing is
   written when the driver is dead, or cannot reach the storage.

No clocks of two machines are compared.  The content is a number that changes every second.  A
number that differs from the one read before was written after that reading.  If that was too long
ago, the task waits for the next number.

On a local or network disk a task holds a shared lock of the permit while it publishes, and the
driver takes the exclusive lock before it removes the permit.  So no task is between its check and
its rename when ``offered_permit`` returns.  Objects have no locks: there a task that was
stopped between the two meets the conditions of the store (see :mod:`.object_writes`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from secure_bloom.errors import DriverLostError, RunEnded
from secure_bloom.storage.open_folder import CLOEXEC, NOFOLLOW, NONBLOCK, close, fcntl
from secure_bloom.storage.paths import is_object_uri

#: Seconds for which a renewed permit is good.
LEASE: Final = 30.0
PAUSE: Final = 0.02
#: What a permit contains that could not be removed.
WITHDRAWN: Final = b"withdrawn"
_MOST_BYTES: Final = 64
_ENDED: Final = "the run that this task belongs to has ended, so nothing is written"


@dataclass(frozen=True, slots=True)
class Permit:
    """The place of a permit, as it is sent to the tasks."""

    path: str


def now() -> float:
    """Return a time that also counts while the machine sleeps, if the system has that clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _Holder:
    """A permit in a task, and when its driver was last known to be alive."""

    def __init__(self, permit: Permit) -> None:
        self._path = permit.path
        self._lock = threading.Lock()
        self._content: bytes | None = None
        #: When a renewal was first missed, and not found since.
        self._was_recent = True
        # The driver has just started this task.
        self._alive = self._read = self._missed = now()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Run the block if the permit is good. Hold a shared lock on a local permit meanwhile."""
        while True:
            with self._content_now() as content:
                if self._is_recent(content):
                    yield
                    return
            # Without the lock: the driver may be waiting for it.  Once, and not for each file.
            if now() > self._missed + LEASE:
                raise DriverLostError(
                    f"the run's driver has not renewed its permit for {LEASE:g} seconds, so "
                    "nothing is written",
                    hint=f"see whether the driver lives and can write {self._path}, and run again",
                )
            time.sleep(PAUSE)

    def _is_recent(self, content: bytes) -> bool:
        if content == WITHDRAWN:
            raise RunEnded(_ENDED)
        with self._lock:
            before, read = self._read, now()
            # An empty one is being written.
            if content and content != self._content:
                if self._content is not None:
                    self._alive = before
                self._content = content
            self._read = read
            is_recent = read - self._alive <= LEASE
            if is_recent:
                self._was_recent = True
            elif self._was_recent:
                self._was_recent, self._missed = False, read
            return is_recent

    @contextmanager
    def _content_now(self) -> Iterator[bytes]:
        if is_object_uri(self._path):
            yield _object(self._path)
            return
        try:
            fd = os.open(self._path, os.O_RDONLY | CLOEXEC | NOFOLLOW | NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            raise RunEnded(_ENDED) from None
        except OSError as error:
            reason = (error.strerror or "it failed").lower()
            raise DriverLostError(
                f"the run's permit cannot be read, so nothing is written: {reason}",
                hint=f"executors must be able to read {self._path}",
            ) from error
        try:
            # Locked exclusively, it is being withdrawn.  Opened before its removal, it has no name.
            is_withdrawn = is_busy(fd, fcntl.LOCK_SH) or os.fstat(fd).st_nlink == 0
            yield WITHDRAWN if is_withdrawn else os.pread(fd, _MOST_BYTES, 0)
        finally:
            close(fd)


def _object(path: str) -> bytes:
    from secure_bloom.storage.objects import arrow_location, store_errors

    filesystem, key = arrow_location(path)
    with store_errors(path):
        try:
            with filesystem.open_input_stream(key, compression=None) as stream:
                content: bytes = stream.read(_MOST_BYTES)
        except FileNotFoundError:
            raise RunEnded(_ENDED) from None
    return content


def is_busy(fd: int, lock: int) -> bool:
    """Try to take a lock. Return True if another process holds it, and False also without locks."""
    try:
        fcntl.flock(fd, lock | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        # A file system without locks.
        return False
    return False


#: The permits of the task that this process works on: the innermost is last.
_held: Final[list[_Holder]] = []


@contextmanager
def written_under(permit: Permit) -> Iterator[None]:
    """Let the block, in all threads of this process, write only while the permit is good."""
    holder = _Holder(permit)
    _held.append(holder)
    try:
        yield
    finally:
        _held.remove(holder)


@contextmanager
def may_write() -> Iterator[None]:
    """Raise RunEnded or DriverLostError instead of running the block without a good permit.

    A process without a permit, which works for itself, may always write.
    """
    if not _held:
        yield
        return
    with _held[-1].checked():
        yield


def require_permit() -> None:
    """Raise RunEnded or DriverLostError if this process has a permit that is not good."""
    with may_write():
        pass
