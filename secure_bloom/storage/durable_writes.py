# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH103, PTH120
"""Write bytes and names to the local disk completely and durably, with few system calls."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Iterable
from itertools import islice

from secure_bloom.storage.open_folder import OpenFolder
from secure_bloom.storage.system_calls import pread

#: Buffers one pwritev takes: IOV_MAX of limits.h on Linux, macOS and the BSDs.
_IOV_MAX = 1024


def read_all(fd: int, offset: int, length: int) -> bytes:
    """Return ``length`` bytes from ``offset`` on, or fewer if the file ends before."""
    # One call reads at most 2 GiB on Linux, and may read less than it was asked for.
    data = pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    while data and (missing := length - sum(map(len, parts))):
        data = pread(fd, missing, offset + length - missing)
        parts.append(data)
    return b"".join(parts)


def write_all(fd: int, parts: Iterable[bytes], offset: int) -> int:
    """Write the parts one after the other at ``offset``. Return the offset after the last byte."""
    pending = deque(memoryview(part) for part in parts if part)
    while pending:
        written = os.pwritev(fd, list(islice(pending, _IOV_MAX)), offset)
        if written == 0:
            raise OSError(errno.EIO, "a write took no byte")  # or this would go on for ever
        offset += written
        _drop(pending, written)
    return offset


def begin_writeback(fd: int, offset: int, length: int) -> None:
    """Let the kernel begin to write these bytes to the disk, so that a later sync waits less."""
    if hasattr(os, "posix_fadvise"):
        # It drops pages that are clean; these are dirty, so they are written and stay.
        with contextlib.suppress(OSError):
            os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)


def _drop(pending: deque[memoryview], written: int) -> None:
    while written:
        head = pending.popleft()
        if written < len(head):
            pending.appendleft(head[written:])
            return
        written -= len(head)


def make_folders(path: str) -> None:
    """Create the folder and its missing parents, durably."""
    missing = []
    while path and not os.path.isdir(path):  # noqa: PTH112
        missing.append(path)
        path = os.path.dirname(path)
    # From the top down, each durable in the one above it: else a power cut could lose a whole
    # branch.
    for folder in reversed(missing):
        # Another process may be making the same folders.
        os.makedirs(folder, exist_ok=True)
        with OpenFolder(os.path.dirname(folder)) as parent:
            parent.sync()


def remove_sidecar(folder: OpenFolder, name: str) -> None:
    """Remove Hadoop's checksum file ``.<name>.crc``, durably.

    Spark checks a local file against its sidecar.  With a stale sidecar the file is unreadable or,
    worse, Spark ignores its Bloom filters without an error.  A file without a sidecar is read
    unchecked.  Hence the sidecar is removed, and the folder synced, before the file changes: even a
    power cut cannot leave the new file with the old sidecar.
    """
    sidecar = f".{name}.crc"
    if folder.status(sidecar) is not None:
        folder.unlink(sidecar)
        folder.sync()
