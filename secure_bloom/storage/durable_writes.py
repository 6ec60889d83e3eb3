# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH103, PTH120
"""Write bytes and names to the local disk completely and durably, with few system calls.

The head of a file is copied inside the kernel, in the best way that both file systems support.
``copy_file_range`` comes first.  On file systems with reflinks (XFS, Btrfs) the kernel shares the
blocks instead of copying them, so no separate FICLONE call is needed.  Elsewhere the kernel copies
the bytes without handing them to this process.  ``sendfile`` is used for pairs of file systems
between which ``copy_file_range`` fails.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from secure_bloom.errors import FileChangedError, refused_by_system
from secure_bloom.storage.open_folder import OpenFolder, pread

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
            raise OSError(errno.EIO, "the system wrote none of the bytes")  # else: no end
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
    """Create the folder and its missing parents, durably. Raise PolicyError if that fails."""
    missing = []
    while path and not os.path.isdir(path):  # noqa: PTH112
        missing.append(path)
        path = os.path.dirname(path)
    # From the top down, each durable in the one above it: else a power cut could lose a whole
    # branch.
    for folder in reversed(missing):
        try:
            # Another process may be making the same folders.
            os.makedirs(folder, exist_ok=True)
        except OSError as exc:
            why = (exc.strerror or "it failed").lower()
            raise refused_by_system(
                exc, f"the folder cannot be made: {why}", hint="name another folder", path=folder
            ) from exc
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


#: A multiple of every block size, so that each step can be a reflink; small enough for Ctrl-C.
_STEP_BYTES = 64 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024
#: The unit of st_blocks, whatever the file system's own is: stat(3type).
_STAT_BLOCK = 512
#: Answers of copy_file_range(2) and sendfile(2) that mean "not between these two files".  Some
#: sandboxes answer EPERM to calls that are new to them; sendfile of macOS takes sockets alone.
_NOT_THIS_WAY = {
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    errno.EPERM,
    errno.EBADF,
    errno.ENOTSOCK,
}

#: (source fd, target fd, offset in either, bytes wanted) -> bytes copied, 0 at the source's end.
_Way = Callable[[int, int, int, int, int], int]


def _copy_file_range(source: int, target: int, offset: int, at: int, count: int) -> int:
    return os.copy_file_range(source, target, count, offset, at)


def _sendfile(source: int, target: int, offset: int, at: int, count: int) -> int:
    # sendfile(2) takes an offset for its source only; it writes at the target's own position.
    os.lseek(target, at, os.SEEK_SET)
    return os.sendfile(target, source, offset, count)


def _read_write(source: int, target: int, offset: int, at: int, count: int) -> int:
    return os.pwrite(target, os.pread(source, min(count, _BUFFER_BYTES), offset), at)


_WAYS: list[_Way] = [_sendfile, _read_write]
if hasattr(os, "copy_file_range"):
    _WAYS.insert(0, _copy_file_range)


def copy_head(source: int, target: int, length: int) -> None:
    """Copy bytes 0..``length`` from one open file to the same place of another, which is empty.

    Holes stay holes.  Raises :class:`FileChangedError` when the source ends early, ``OSError`` when
    no way of copying works.
    """
    ways, end = list(_WAYS), 0
    # The list of ways is shared by all ranges: what a pair of file systems has refused is not tried
    # again.
    for start, end in _data_ranges(source, length):
        _copy(source, target, start, end, start, ways)
    # The file ends in a hole: it gets its length without its zeros.  SEEK_DATA finds a hole at the
    # end and an early end alike, so the size is asked for.
    if end < length:
        os.ftruncate(target, length)
        if (size := os.fstat(source).st_size) < length:
            raise _ended(size, length)


def copy_part(source: int, target: int, offset: int, length: int, at: int) -> None:
    """Copy ``length`` bytes from ``offset`` of one open file to ``at`` of another.

    Raises the errors of :func:`copy_head`.
    """
    _copy(source, target, offset, offset + length, at, list(_WAYS))


def _data_ranges(source: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a file that are not holes. A file without holes is one part."""
    status = os.fstat(source)
    # Asking for holes costs a call for each of them, and few files have any.
    is_dense = status.st_blocks * _STAT_BLOCK >= status.st_size
    if is_dense or not hasattr(os, "SEEK_DATA"):
        yield 0, length
        return
    end = 0
    while end < length:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as exc:
            if exc.errno != errno.ENXIO:
                raise
            return  # a hole up to the end
        if start >= length:
            return
        end = min(os.lseek(source, start, os.SEEK_HOLE), length)
        yield start, end


def _copy(source: int, target: int, offset: int, end: int, at: int, ways: list[_Way]) -> None:
    while offset < end:
        try:
            copied = ways[0](source, target, offset, at, min(_STEP_BYTES, end - offset))
        except OSError as exc:
            if exc.errno not in _NOT_THIS_WAY or len(ways) == 1:
                raise
            # This way is not tried again for the file: a pair of file systems that refuses once
            # always refuses.
            del ways[0]
            continue
        # All three ways return 0 at the end of the source alone.
        if copied == 0:
            raise _ended(offset, end)
        offset, at = offset + copied, at + copied


def _ended(offset: int, length: int) -> FileChangedError:
    return FileChangedError(f"the file ended at {offset}, it had at least {length} bytes")
