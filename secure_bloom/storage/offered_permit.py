# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH118
"""The driver's side of a permit to write: create it, renew it, withdraw it when the block ends.

:mod:`.write_permit` describes a permit and how tasks check it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from secure_bloom.errors import SecureBloomError
from secure_bloom.running.uninterrupted import uninterrupted
from secure_bloom.storage.durable_writes import make_folders
from secure_bloom.storage.open_folder import CLOEXEC, NOFOLLOW, close, fcntl
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import is_object_uri, join, local_path
from secure_bloom.storage.write_permit import LEASE, PAUSE, WITHDRAWN, Permit, is_busy, now

#: Seconds between two renewals.
_RENEWED: Final = 1.0
#: Seconds that the driver waits for tasks that are publishing a file.
_PATIENCE: Final = 10.0
#: Permits that were not renewed for so long belong to drivers that were killed.
_DEAD_SECONDS: Final = 3600.0
_PREFIX, _SUFFIX = ".call-", ".secure-bloom"


@contextmanager
def offered_permit(folder: str) -> Iterator[Permit]:
    """Create a permit in a folder, renew it while the block runs, and withdraw it at the end.

    It is withdrawn after an exception too. Then no task that holds the permit publishes a file
    any more. If the permit can be neither removed nor overwritten, this function waits until its
    lease is over.
    """
    name = f"{_PREFIX}{os.urandom(8).hex()}{_SUFFIX}"
    kept: _Kept = (_KeptObject if is_object_uri(folder) else _KeptFile)(folder, name)
    over = threading.Event()
    renewal = threading.Thread(target=_renew, args=(kept, over), daemon=True)

    def end() -> None:
        over.set()
        if renewal.ident is not None:
            renewal.join()
        try:
            kept.withdraw()
        except (OSError, SecureBloomError):
            time.sleep(max(0.0, kept.renewed + LEASE - now()))

    try:
        kept.create()
        renewal.start()
        yield Permit(kept.path)
    finally:
        # Ctrl-C, pressed twice, must not leave a permit that is good, or that is renewed.
        uninterrupted(end)


def _renew(kept: _Kept, over: threading.Event) -> None:
    while not over.wait(_RENEWED):
        # What cannot be renewed runs out, and nothing is written any more.
        with contextlib.suppress(Exception):
            kept.renew()


class _Kept(ABC):
    """A permit on the driver's side."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.renewed = now()
        self._number = 0

    def renew(self) -> None:
        """Write the next number into the permit, which shows tasks that the driver lives."""
        self._number += 1
        # Before the write: after an error the new number may be there.
        self.renewed = now()
        self.write(f"{self._number:020d}".encode())

    @abstractmethod
    def create(self) -> None:
        """Write the permit for the first time."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Write the whole content of the permit."""

    @abstractmethod
    def withdraw(self) -> None:
        """Make the permit invalid for every task, if it was created."""


class _KeptFile(_Kept):
    """A permit on a local or network disk."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = os.path.abspath(local_path(folder))  # noqa: PTH100
        super().__init__(os.path.join(self._folder, name))
        self._fd: int | None = None

    def create(self) -> None:
        with system_errors(self._folder):
            make_folders(self._folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOEXEC | NOFOLLOW
            self._fd = os.open(self.path, flags, 0o644)
            # Whatever the umask is: executors may run as another user.
            os.fchmod(self._fd, 0o644)
            self.renew()
            _remove_dead(self._folder, os.fstat(self._fd).st_mtime)

    def write(self, content: bytes) -> None:
        if self._fd is not None:
            os.pwrite(self._fd, content, 0)

    def withdraw(self) -> None:
        if self._fd is None:
            return
        # Tasks that are publishing a file hold the shared lock.
        deadline = now() + _PATIENCE
        while is_busy(self._fd, fcntl.LOCK_EX) and now() < deadline:
            time.sleep(PAUSE)
        # First the content: another machine may know the name for some seconds more.
        os.ftruncate(self._fd, 0)
        self.write(WITHDRAWN)
        with contextlib.suppress(OSError):
            os.unlink(self.path)  # noqa: PTH108
        close(self._fd)


class _KeptObject(_Kept):
    """A permit in an object store."""

    def __init__(self, folder: str, name: str) -> None:
        super().__init__(join(folder, name))
        self._may_be_there = False

    def create(self) -> None:
        self._may_be_there = True
        try:
            self.renew()
        except SecureBloomError:
            # No task knows of it yet.
            self._may_be_there = False
            raise

    def write(self, content: bytes) -> None:
        from secure_bloom.storage.object_writes import put_object

        put_object(self.path, content, must_be_new=False)

    def withdraw(self) -> None:
        from secure_bloom.storage.object_writes import remove_object

        if not self._may_be_there:
            return
        try:
            remove_object(self.path)
        except (OSError, SecureBloomError):
            # Who may write objects may not always remove them.
            self.write(WITHDRAWN)


def _remove_dead(folder: str, time_of_disk: float) -> None:
    """Remove permits that killed drivers have left."""
    for name in os.listdir(folder):  # noqa: PTH208
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) and time_of_disk - found.st_mtime > _DEAD_SECONDS:
                    os.unlink(path)  # noqa: PTH108
