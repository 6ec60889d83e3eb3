# File descriptors and strings, not Path objects, throughout.
# ruff: noqa: PTH100, PTH116, PTH118, PTH119, PTH120
"""Append bytes to a local file, and take them back after an error.

After any exception (a full disk, a limit, Ctrl-C) the old file is back.  If the tail could be
written at once (:func:`write_at_once`), a SIGKILL leaves the old file or the new one.  That needs
an aligned end, and a file system with O_DIRECT, such as ext4 or XFS.  Elsewhere, a SIGKILL or a
power cut in mid-write leaves the old bytes unchanged, followed by some of the new bytes.  A file
with a torn tail cannot be opened, because the magic is written last, when everything before it is
on the disk.  A caller who finds a torn tail looks up where the old footer ends and calls
:func:`truncate_to`.

One O_DIRECT write makes a local file longer by all of the new bytes, or by none.  A buffered write
makes a file longer page by page, and a SIGKILL between two pages leaves a torn tail (seen on ext4,
every time).  A direct write is handed to the disk whole.  The kernel waits for it even when the
process is killed, and sets the new length when all bytes are there.  A direct write takes whole
blocks.  So it starts at the block that holds the old end, and repeats the old bytes of that block.
The new end must be a multiple of :data:`APPEND_ALIGNMENT`.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from secure_bloom.errors import FileChangedError, FormatError, PolicyError, UnfinishedWriteError
from secure_bloom.storage.durable_writes import read_all, remove_sidecar, write_all
from secure_bloom.storage.local import LocalFile, identity_of
from secure_bloom.storage.locks import exclusive_lock
from secure_bloom.storage.open_folder import CLOEXEC, NONBLOCK, OpenFolder, close
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import local_path
from secure_bloom.storage.staged_file import hidden_name
from secure_bloom.storage.write_permit import may_write

#: A multiple of every disk's logical block size in use.
APPEND_ALIGNMENT = 4096

#: Answers of file systems without direct writes: open(2), "O_DIRECT".
_NOT_HERE = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY}


def write_at_once(fd: int, parts: Sequence[bytes], offset: int) -> bool:
    """Write the parts at ``offset``, the end of the file ``fd``, in one direct write.

    Return False if the new end is not aligned or the system cannot write directly.  The bytes after
    ``offset`` are then undefined, and the caller writes all parts in another way.
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
    """Return memory that begins on a page, as a direct write requires."""
    # Private, and in large pages: shared memory in small ones takes eight times as long to fill, to
    # write from and to give back.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # A system may have been built without them.
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


#: Without these last bytes of it, the magic, nobody opens a Parquet file.
_MAGIC_BYTES = 4
_CHUNK_BYTES = 1024 * 1024


def append_local(source: LocalFile, tail: Sequence[bytes]) -> int:
    """Write the tail after the last byte of source. Return the new size in bytes."""
    added = sum(map(len, tail))
    with (
        system_errors(source.path),
        _writable(source.path, source.location, source.identity) as fd,
        may_write(),
        _undone_on_error(fd, source.size),
    ):
        _refuse_other_names(fd)
        # A tail that fills the disk half-way would have to be taken back, so the room is asked for
        # first.
        _require_room(fd, added)
        # The checksums go before the first new byte: with stale ones Spark ignores the filters, or
        # fails.
        _remove_sidecars(fd, source.location)
        # False may mean that some of the bytes are there: all of them are written again.
        if not write_at_once(fd, tail, source.size):
            _write_in_steps(fd, tail, source.size)
        os.fsync(fd)
    return source.size + added


def _refuse_other_names(fd: int) -> None:
    """Raise PolicyError for a file with hard links.

    Appending changes the file under all of its names. Another name may belong to a backup, or to a
    table whose log records the file's size.
    """
    if os.fstat(fd).st_nlink > 1:
        raise PolicyError(
            "the file has other names (hard links), under which it would grow too",
            hint="replace the file instead: leave out --in-place; other names keep the old content",
        )


def truncate_to(path: str, size: int, expected_identity: tuple[object, ...]) -> str:
    """Cut a local file to its first ``size`` bytes, durably. Return the path of the bytes cut off.

    The cut bytes are kept in a hidden file in the same folder until :func:`remove_kept`.
    ``expected_identity`` comes from the :class:`InputFile` in which the torn tail was seen.  Raises
    :class:`FileChangedError` if another file is at the path by now, and :class:`FormatError` when
    the file is shorter than ``size``.
    """
    location = os.path.abspath(local_path(path))
    folder_path, name = os.path.split(os.path.realpath(location))
    with (
        system_errors(path),
        _writable(path, location, expected_identity) as fd,
        may_write(),
        OpenFolder(folder_path) as folder,
    ):
        length = os.fstat(fd).st_size
        # The size comes from a footer that was found, and a longer file would be filled up with
        # zeros.
        if not 0 <= size <= length:
            raise FormatError(f"cannot be cut to {size} bytes, the file has {length}", path=path)
        # Copied before it is cut: should we be wrong about what these bytes are, their owner still
        # has them.
        kept = _keep_aside(folder, name, fd, size, length)
        os.ftruncate(fd, size)
        os.fsync(fd)
    return os.path.join(folder_path, kept)


def remove_kept(path: str) -> None:
    """Remove the hidden file that :func:`truncate_to` made."""
    folder_path, name = os.path.split(path)
    with system_errors(path), OpenFolder(folder_path) as folder, may_write():
        folder.unlink(name)


@contextmanager
def _writable(path: str, location: str, identity: tuple[object, ...]) -> Iterator[int]:
    # The name may lead to a pipe by now, and opening that would wait for its other end.
    fd = os.open(location, os.O_RDWR | CLOEXEC | NONBLOCK)
    try:
        with exclusive_lock(fd):
            # The name is looked at as well: the file may have been replaced while we waited for the
            # lock.
            if not identity == identity_of(os.fstat(fd)) == identity_of(os.stat(location)):
                raise FileChangedError("the file was changed after it was read", path=path)
            yield fd
    finally:
        close(fd)


@contextmanager
def _undone_on_error(fd: int, size: int) -> Iterator[None]:
    before = os.fstat(fd)
    try:
        yield
    # Ctrl-C and a worker that is stopped are no Exception, and must leave the old file too.
    except BaseException as error:
        try:
            _cut_off(fd, size, before)
        except OSError as exc:
            raise UnfinishedWriteError(
                "writing failed, and the bytes that were written after the old file could not be "
                f"removed: {(exc.strerror or 'it failed').lower()}",
                hint="add --in-place cuts it off when it runs again",
            ) from error
        raise


def _cut_off(fd: int, size: int, before: os.stat_result) -> None:
    # The file is never lengthened: another program may have cut it meanwhile.
    if os.fstat(fd).st_size <= size:
        return
    os.ftruncate(fd, size)
    # The old bytes get their old time back: readers that remember files by it see no change.
    with contextlib.suppress(OSError):
        os.utime(fd, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.fsync(fd)


def _require_room(fd: int, length: int) -> None:
    """Raise the error of a full disk, before anything is written, if the bytes do not fit.

    The space is not reserved: after a kill, reserved blocks would stay past the end of the file.
    """
    disk = os.fstatvfs(fd)
    # Some network file systems report no sizes at all, all zeros.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < length:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _write_in_steps(fd: int, tail: Sequence[bytes], offset: int) -> None:
    """Write the first part, then the rest without the magic, then the magic. Sync after each step.

    After a power cut any page that was not synced may be missing.  The first part says where the
    old file ends, so a torn file can be repaired.  The magic is written when all bytes before it
    are durable, so a file that ends in a magic has all of its filters and its footer.
    """
    content = b"".join(tail)
    first, last = len(tail[0]) if tail else 0, max(0, len(content) - _MAGIC_BYTES)
    for start, end in itertools.pairwise([0, min(first, last), last, len(content)]):
        if end > start:
            write_all(fd, [content[start:end]], offset + start)
            os.fsync(fd)


def _remove_sidecars(fd: int, location: str) -> None:
    """Remove the .crc of the open file, and the .crc of the symbolic link that leads to it."""
    for path in dict.fromkeys((location, os.path.realpath(location))):
        with OpenFolder(os.path.dirname(path)) as folder:
            name = os.path.basename(path)
            found = folder.status(name, follow=True)
            if found is not None and os.path.samestat(found, os.fstat(fd)):
                remove_sidecar(folder, name)


def _keep_aside(folder: OpenFolder, name: str, fd: int, start: int, end: int) -> str:
    """Copy bytes of the file into a new hidden file beside it, durably.

    Return the new file's name.
    """
    kept, copy = _new_file(folder, name)
    try:
        for offset in range(start, end, _CHUNK_BYTES):
            data = read_all(fd, offset, min(_CHUNK_BYTES, end - offset))
            write_all(copy, [data], offset - start)
        os.fsync(copy)
        # The name as well as the bytes: the file is cut next, and a power cut must not lose both.
        folder.sync()
    except BaseException:
        with contextlib.suppress(OSError):
            folder.unlink(kept)
        raise
    finally:
        close(copy)
    return kept


def _new_file(folder: OpenFolder, name: str) -> tuple[str, int]:
    for number in itertools.count():
        kept = hidden_name(name, f"secure-bloom-cut-{number}" if number else "secure-bloom-cut")
        with contextlib.suppress(FileExistsError):
            return kept, folder.open(kept, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    raise AssertionError  # itertools.count has no end
