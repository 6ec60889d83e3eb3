# The base class documents the methods.
# ruff: noqa: D102
"""A file open for reading: bounded reads, files beside it, and a check that it is unchanged.

All other packages read through :class:`InputFile`.  So a file that is shorter than its footer says
is noticed in one place.

A ``CountedFile`` counts the bytes read from another file.  An ``OverlaidFile`` is a file as it
would be after a rewrite that was planned but not carried out.
"""

from __future__ import annotations

import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.running.memory_budget import refuse_beyond
from secure_bloom.storage.durable_writes import write_all

if TYPE_CHECKING:
    from secure_bloom.storage.column_mapping import ColumnMapping

#: Most bytes of a file beside a data file.  Key material takes a few hundred bytes a column.
MAX_SIBLING_BYTES = 16 * 1024 * 1024
#: Start and end of a read, in bytes of the file.
Extent = tuple[int, int]
#: One request brings this much of the end of an object: the footer, and the filters before it.  In
#: the time that a store takes to answer, far more would arrive.
END = 128 * 1024
_CHUNK_BYTES = 64 * 1024 * 1024
_DEFAULT_MODE = 0o666


class InputFile(ABC):
    """A file open for reading. Threads may share it. Use it as a context manager.

    Attributes:
        path: The path as the user gave it.
        location: The same path made absolute.
        name: The last part of the path.
        size: The number of bytes when the file was opened.
        names: The number of hard links when the file was opened.
        identity: An opaque value that is equal as long as nobody changed the file. All but its
            first part is the same on every machine.
        column_names: The table's column names, if they differ from the file's.
        is_pinned: Whether each read is on the condition that the file is unchanged.
        is_locked: Whether a block of :meth:`exclusive` keeps other writers out now.
    """

    is_pinned = False

    def __init__(
        self, *, path: str, location: str, name: str, size: int, identity: tuple[object, ...]
    ) -> None:
        # An empty file is what a writer that was killed leaves, and no reader says so plainly.
        if size == 0:
            raise FormatError("the file is empty", path=path)
        self.path = path
        self.location = location
        self.name = name
        self.size = size
        self.identity = identity
        self.names = 1
        self.is_locked = False
        self.column_names: ColumnMapping | None = None

    @property
    def descriptor(self) -> int | None:
        """The open descriptor of a local file, for copies inside the kernel. None for objects."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def read_at(self, offset: int, length: int) -> bytes:
        """Return exactly ``length`` bytes from ``offset``.

        Raises :class:`FormatError` if the file ends before.
        """
        self._check_range(offset, length)
        data = self._read(offset, length)
        if len(data) != length:
            raise FormatError(
                f"wants bytes {offset}..{offset + length}, the file ended at {offset + len(data)}",
                hint="the file was cut while it was read",
                path=self.path,
            )
        return data

    def view_at(self, offset: int, length: int) -> memoryview:
        """Return the bytes that :meth:`read_at` returns.

        They are read in pieces, without a copy.
        """
        self._check_range(offset, length)
        if length <= _CHUNK_BYTES:
            return memoryview(self.read_at(offset, length))
        view = memoryview(bytearray(length))
        for start in range(0, length, _CHUNK_BYTES):
            end = min(start + _CHUNK_BYTES, length)
            view[start:end] = self.read_at(offset + start, end - start)
        return view.toreadonly()

    def read_into(self, offset: int, into: memoryview) -> None:
        """Fill ``into`` with the bytes from ``offset`` on.

        Raises FormatError if the file ends before.
        """
        into[:] = self.read_at(offset, len(into))

    def repeats(self, content: bytes, offset: int, step: int, most: int) -> int:
        """Return how often ``content`` is at ``offset``, ``offset + step`` and so on.

        The count ends at the first difference, and at ``most``.  It is 0 for objects, where each
        look would be a request.
        """
        del content, offset, step, most
        return 0

    def all_bytes(self) -> bytes:
        """Return all bytes of a file that is read as a whole, for example of a log.

        Raises MemoryBudgetError for a file that is too large: a sparse file can claim any size
        without occupying disk space.
        """
        # Twice: the view that is read into, and the bytes made of it.
        refuse_beyond(2 * self.size, "the file, which is read as a whole,")
        return bytes(self.view_at(0, self.size))

    def _check_range(self, offset: int, length: int) -> None:
        # Checked before anything is read: both numbers come from the file, and memory for the read
        # is taken first.
        if offset < 0 or length < 0 or offset + length > self.size:
            raise FormatError(
                f"wants bytes {offset}..{offset + length}, the file has {self.size}", path=self.path
            )

    def read_ahead(
        self, extents: Sequence[Extent], *, to_replace: bool = False, room: int = 0
    ) -> None:
        """Fetch ranges that will be read soon, in few requests.

        Only a bounded amount is kept in memory, or ``room`` bytes if that is more, so some ranges
        may be left out. With ``to_replace``, the file may be fetched whole, because a new file will
        replace it whole.
        """
        del extents, to_replace, room

    def holds(self, offset: int, length: int) -> bool:
        """Return whether these bytes are in memory, so that reading them makes no request."""
        del offset, length
        return False

    def set_aside(self) -> None:
        """Prepare for reads that happen after the file may have been replaced.

        These reads return bytes of this file, or raise FileChangedError.
        """
        return

    def read_sibling(self, name: str, *, limit: int = MAX_SIBLING_BYTES) -> bytes | None:
        """Return the content of a file in the same folder, or None if there is none.

        Raises an error if it has more than ``limit`` bytes.
        """
        # Names of key material come from a file's footer: they must not lead out of its folder.
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            raise PolicyError(f"{name!r} is not the name of a file beside this one", path=self.path)
        # A byte more than allowed, to distinguish a file of that size from a larger one.
        data = self._read_sibling(name, limit + 1)
        if data is not None and len(data) > limit:
            raise FormatError(f"{name} is larger than {limit} bytes", path=self.path)
        return data

    def has_sibling(self, name: str) -> bool:
        """Return whether a file of this name is in the same folder.

        Reads at most one byte of it.
        """
        return self._read_sibling(name, 1) is not None

    def chunks(self, keep: int, tail: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the first ``keep`` bytes in pieces of at most 64 MiB, then the tail at once."""
        for offset in range(0, keep, _CHUNK_BYTES):
            yield self.read_at(offset, min(_CHUNK_BYTES, keep - offset))
        yield b"".join(tail)

    def copy_to(self, fd: int, keep: int, tail: Sequence[bytes]) -> int:
        """Write the first ``keep`` bytes and the tail to the empty local file ``fd``.

        Return the size.
        """
        size = 0
        for chunk in self.chunks(keep, tail):
            size = write_all(fd, [chunk], size)
        return size

    def carry_attributes(self, fd: int) -> None:
        """Give the open local file ``fd`` this file's permissions, or those of any new file."""
        # The rights are set by fchmod: the file was made private, and the umask acts only when a
        # file is made.
        os.fchmod(fd, _DEFAULT_MODE & ~_umask())

    def exclusive(self) -> AbstractContextManager[None]:
        """Lock other writers of this package out of the file, if the store has locks.

        A nested block of the same thread does nothing.
        """
        return nullcontext()

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise :class:`FileChangedError` unless the path still leads to this unchanged file."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @abstractmethod
    def _read(self, offset: int, length: int) -> bytes:
        """Return ``length`` bytes, or fewer if the file ends before."""

    @abstractmethod
    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        """Return up to ``limit`` bytes of the sibling."""


def _umask() -> int:
    """Return the permission bits that new files do not get."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"^Umask:\s*([0-7]+)", status.read_text(), re.M)):
        return int(found[1], 8)
    # umask(2) returns the old value only while it sets a new one, and for a moment other threads
    # have that, too.  With 0o077 a file that another thread makes then is too private, never too
    # open.
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


class CountedFile(InputFile):
    """Reads another file and counts ``bytes_read`` and ``requests``.

    ``extents`` are the ranges that were read. A read that starts where the previous read ended
    makes the extent longer.
    """

    def __init__(self, file: InputFile) -> None:
        super().__init__(
            path=file.path,
            location=file.location,
            name=file.name,
            size=file.size,
            identity=file.identity,
        )
        self.column_names = file.column_names
        self._file = file
        self.bytes_read = 0
        self.requests = 0
        self.extents: list[Extent] = []

    def check_unchanged(self) -> None:
        self._file.check_unchanged()

    def read_ahead(
        self, extents: Sequence[Extent], *, to_replace: bool = False, room: int = 0
    ) -> None:
        self._file.read_ahead(extents, to_replace=to_replace, room=room)

    def holds(self, offset: int, length: int) -> bool:
        return self._file.holds(offset, length)

    def repeats(self, content: bytes, offset: int, step: int, most: int) -> int:
        times = self._file.repeats(content, offset, step, most)
        for at in range(offset, offset + times * step, step):
            self._count(at, len(content))
        return times

    def close(self) -> None:
        self._file.close()

    def read_into(self, offset: int, into: memoryview) -> None:
        self._count(offset, len(into))
        self._file.read_into(offset, into)

    def _read(self, offset: int, length: int) -> bytes:
        self._count(offset, length)
        return self._file.read_at(offset, length)

    def _count(self, offset: int, length: int) -> None:
        self.bytes_read += length
        # An object's end comes in one request, and then counts for what is read of it.
        self.requests += not self._file.holds(offset, length)
        start = offset
        if self.extents and self.extents[-1][1] == offset:
            # Pages are read one after the other, so most reads lengthen the last extent and few are
            # kept.
            start, _ = self.extents.pop()
        self.extents.append((start, offset + length))

    def _read_sibling(self, name: str, limit: int) -> bytes | None:  # noqa: ARG002 - the same
        return self._file.read_sibling(name)


class SharedFile(CountedFile):
    """An open file for one user after another. ``close`` leaves it open."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(file)
        self.is_pinned = file.is_pinned

    def close(self) -> None:
        return


def covered(extents: Iterable[Extent]) -> int:
    """Return the number of bytes in the extents. A byte in several extents counts once."""
    size = reached = 0
    for start, end in sorted(extents):
        size += max(0, end - max(start, reached))
        reached = max(reached, end)
    return size


class BytesFile(InputFile):
    """A file whose bytes are in memory already."""

    def __init__(self, path: str, content: bytes) -> None:
        super().__init__(
            path=path, location=path, name=path, size=len(content), identity=(id(content),)
        )
        self._content = content

    def check_unchanged(self) -> None:
        return

    def close(self) -> None:
        return

    def _read(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]

    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        del name, limit
        return None


class StreamFile(InputFile):
    """A seekable stream that is open already. It stays open."""

    def __init__(self, stream: BinaryIO) -> None:
        size = stream.seek(0, io.SEEK_END)
        super().__init__(path="", location="", name="", size=size, identity=(id(stream),))
        self._stream = stream

    def check_unchanged(self) -> None:
        return

    def close(self) -> None:
        return

    def _read(self, offset: int, length: int) -> bytes:
        self._stream.seek(offset)
        return self._stream.read(length)

    def _read_sibling(self, name: str, limit: int) -> bytes | None:
        del name, limit
        return None


class OverlaidFile(InputFile):
    """The first ``keep`` bytes of another file, followed by ``tail``, which is in memory."""

    def __init__(self, file: InputFile, keep: int, tail: Sequence[bytes]) -> None:
        self._file = file
        self._keep = keep
        self._tail = b"".join(tail)
        size = keep + len(self._tail)
        super().__init__(
            path=file.path,
            location=file.location,
            name=file.name,
            size=size,
            # Another file than the one below it: what was cached of that must not be taken for
            # this.
            identity=(*file.identity, size),
        )
        self.is_pinned = file.is_pinned
        self.column_names = file.column_names

    def check_unchanged(self) -> None:
        self._file.check_unchanged()

    def close(self) -> None:
        self._file.close()

    def _read(self, offset: int, length: int) -> bytes:
        # A read may reach over the seam, or lie on one side of it.
        of_file = max(0, min(length, self._keep - offset))
        head = self._file.read_at(offset, of_file) if of_file else b""
        start = max(0, offset - self._keep)
        return head + self._tail[start : start + length - of_file]

    def _read_sibling(self, name: str, limit: int) -> bytes | None:  # noqa: ARG002 - the same
        return self._file.read_sibling(name)
