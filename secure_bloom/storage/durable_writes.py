# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH108, PTH118
"""Bytes and names onto the local disk: all of them, durably, with few system calls."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable
from itertools import islice

#: Buffers one pwritev takes: IOV_MAX of limits.h on Linux, macOS and the BSDs.
_IOV_MAX = 1024


def write_all(fd: int, parts: Iterable[bytes], offset: int) -> int:
    """Write the parts one after the other at ``offset``; the offset after the last byte."""
    pending = deque(memoryview(part) for part in parts if part)
    while pending:
        written = os.pwritev(fd, list(islice(pending, _IOV_MAX)), offset)
        offset += written
        _drop(pending, written)
    return offset


def _drop(pending: deque[memoryview], written: int) -> None:
    while written:
        head = pending.popleft()
        if written < len(head):
            pending.appendleft(head[written:])
            return
        written -= len(head)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable: fsync of the folder, where the file system has that."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as exc:
        if exc.errno != errno.EINVAL:
            raise
    finally:
        os.close(fd)


def remove_sidecars(*paths: str) -> None:
    """Remove Hadoop's checksum file ``.<name>.crc`` of each path, durably.

    Spark checks a local file against its sidecar: a stale one makes the file unreadable or,
    worse, makes Spark drop a Bloom filter without a word.  A file without one is read unchecked,
    so the sidecar must be gone, even after a power cut, before the file is another.
    """
    for path in dict.fromkeys(paths):
        folder, name = os.path.split(path)
        sidecar = os.path.join(folder, f".{name}.crc")
        # lexists, not ENOENT: beside a name of 255 bytes there is no room for a longer one.
        if os.path.lexists(sidecar):
            os.unlink(sidecar)
            sync_folder(folder)
