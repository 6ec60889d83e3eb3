# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH116
"""New bytes after the end of a local file, and the way back.

After any exception (a full disk, a limit, Ctrl-C) the old file is back.  After a SIGKILL the file
is the old one or the new one if the tail could be written at once (see ``direct_write``: the end
must be aligned, and the file system must have O_DIRECT, as ext4 and XFS do).  Elsewhere a SIGKILL
or a power cut in mid-write leaves the old bytes unchanged, with some of the new bytes after them.
A caller who meets such a file finds where the old footer ends and calls :func:`truncate_to`.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.storage.direct_write import write_at_once
from secure_bloom.storage.durable_writes import remove_sidecars, write_all
from secure_bloom.storage.local import LocalFile, identity_of
from secure_bloom.storage.locks import exclusive_lock
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import local_path

_FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h
_NO_RESERVATIONS = {errno.EOPNOTSUPP, errno.ENOSYS}


def append_local(source: LocalFile, tail: Sequence[bytes]) -> int:
    """Write the tail after the last byte of source; the new size in bytes."""
    with (
        system_errors(source.path),
        _writable(source.path, source.location, source.identity) as fd,
        _undone_on_error(fd, source.size),
    ):
        _reserve(fd, source.size, sum(map(len, tail)))
        remove_sidecars(source.location, os.path.realpath(source.location))
        size = source.size + sum(map(len, tail))
        if not write_at_once(fd, tail, source.size):
            write_all(fd, tail, source.size)
        os.fsync(fd)
    return size


def truncate_to(path: str, size: int, expected_identity: tuple[object, ...]) -> None:
    """Cut a local file back to its first ``size`` bytes, durably.

    ``expected_identity`` is that of the file as it is now, from the :class:`InputFile` in which
    the torn tail was seen; :class:`FileChangedError` when the file is another by now, and
    :class:`FormatError` when it is shorter than ``size``.
    """
    location = os.path.abspath(local_path(path))
    with system_errors(path), _writable(path, location, expected_identity) as fd:
        length = os.fstat(fd).st_size
        if not 0 <= size <= length:
            raise FormatError(f"cannot be cut to {size} bytes, the file has {length}", path=path)
        os.ftruncate(fd, size)
        os.fsync(fd)


@contextmanager
def _writable(path: str, location: str, identity: tuple[object, ...]) -> Iterator[int]:
    fd = os.open(location, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        with exclusive_lock(fd):
            # By name as well: the file may have been replaced while we waited for the lock.
            if not identity == identity_of(os.fstat(fd)) == identity_of(os.stat(location)):
                raise FileChangedError("the file was changed after it was read", path=path)
            yield fd
    finally:
        os.close(fd)


@contextmanager
def _undone_on_error(fd: int, size: int) -> Iterator[None]:
    before = os.fstat(fd)
    try:
        yield
    except BaseException:
        os.ftruncate(fd, size)  # also frees what was reserved
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.fsync(fd)
        raise


def _reserve(fd: int, offset: int, length: int) -> None:
    """Have the disk say now that it is full; the file keeps its size, unlike posix_fallocate."""
    if not sys.platform.startswith("linux") or length == 0:
        return
    import ctypes  # slow to import, and not for readers

    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if fallocate(fd, _FALLOC_FL_KEEP_SIZE, offset, length) == 0:
        return
    code = ctypes.get_errno()
    if code not in _NO_RESERVATIONS:
        raise OSError(code, os.strerror(code))
