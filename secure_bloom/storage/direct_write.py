# File descriptors and strings, not Path objects, throughout.
"""One O_DIRECT write that lengthens a local file once: all of the new bytes, or none.

A buffered write lengthens a file page by page, and a SIGKILL between two pages leaves a torn tail
(seen on ext4, every time).  A direct write is handed to the disk whole.  The kernel waits for it
even when the process is killed, and sets the new length when all of it is there.  It takes whole
blocks.  So it starts at the block in which the old end lies, and repeats the old bytes of that
block; and the new end must lie on a block: :data:`APPEND_ALIGNMENT`.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Sequence

from secure_bloom.errors import FileChangedError
from secure_bloom.storage.durable_writes import read_all
from secure_bloom.storage.open_folder import close

#: A multiple of every disk's logical block size in use.
APPEND_ALIGNMENT = 4096

#: Answers of file systems without direct writes: open(2), "O_DIRECT".
_NOT_HERE = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY}


def write_at_once(fd: int, parts: Sequence[bytes], offset: int) -> bool:
    """Write the parts at ``offset``, the end of the file ``fd``, in one direct write.

    False if the new end is not aligned or the system cannot do it.  Then nothing can be relied on
    after ``offset``, and the caller writes all of it in another way.
    """
    end = offset + sum(map(len, parts))
    # macOS has no such flag.
    flag = getattr(os, "O_DIRECT", None)
    if flag is None or end % APPEND_ALIGNMENT or end == offset:
        return False
    try:
        # A second descriptor, by /proc and not by name: the file may have got another name, and the
        # flag must not change how the first one writes.
        direct = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC | flag)
    except OSError as exc:
        if exc.errno in _NOT_HERE | {errno.ENOENT}:
            return False
        raise
    try:
        return _write(direct, fd, parts, offset, end)
    finally:
        close(direct)


def _write(direct: int, fd: int, parts: Sequence[bytes], offset: int, end: int) -> bool:
    start = offset - offset % APPEND_ALIGNMENT
    old = read_all(fd, start, offset - start)
    if len(old) != offset - start:
        # Written all the same, the new bytes would land on old ones.
        raise FileChangedError(f"the file ended at {start + len(old)}, it had {offset} bytes")
    with _aligned_memory(end - start) as block:
        block.write(old)
        for part in parts:
            block.write(part)
        try:
            written = os.pwritev(direct, [block], start)
        except OSError as exc:
            if exc.errno in _NOT_HERE:
                return False
            raise
    # A short write, for example on a full disk.  The other way writes all, or raises the error.
    return written == end - start


def _aligned_memory(size: int) -> mmap.mmap:
    """Memory that begins on a page, as a direct write wants it."""
    # Private, and in large pages: shared memory in small ones takes eight times as long to fill, to
    # write from and to give back.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # A system may have been built without them.
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
