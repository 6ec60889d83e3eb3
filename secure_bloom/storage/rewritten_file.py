# The base class documents the methods.
# ruff: noqa: D102
"""Describe a new file: new parts, and ranges that are copied from the old file."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from secure_bloom.running.ordered_pool import TINY
from secure_bloom.storage.durable_writes import begin_writeback, copy_part, write_all
from secure_bloom.storage.inputs import InputFile
from secure_bloom.storage.local import LocalFile

#: New bytes are written when there are this many.
_BATCH = 2 * 1024 * 1024
#: The most bytes of batches that are held while others are worked out, unless one batch is larger.
_HELD = 3 * _BATCH
#: A range that is copied through this process goes in pieces of at most this size.
_PIECE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OldRange:
    """A range of the old file that is copied into the new one unchanged."""

    offset: int
    length: int


#: The unit of one write.
Batch = list[bytes] | OldRange


def _batches(parts: Iterable[bytes | OldRange]) -> Iterator[tuple[Batch, int]]:
    """Yield batches of parts, in which small parts are joined, and the size of each batch."""
    batch: list[bytes] = []
    length = 0
    for part in parts:
        if not isinstance(part, OldRange):
            batch.append(part)
            length += len(part)
        if batch and (length >= _BATCH or isinstance(part, OldRange)):
            yield batch, length
            batch, length = [], 0
        if isinstance(part, OldRange):
            yield part, part.length
        # A page may be large: it is let go before the next one is worked out.
        del part
    if batch:
        yield batch, length


class RewrittenFile(InputFile):
    """A file to be written from ``parts``, which are computed while they are written.

    ``parts`` is iterated once.  Hand the file to :func:`.dispatch.replace_tail` with ``keep`` 0 and
    no tail.  ``check`` is called with the new file before it takes its place, and raises if the
    file is wrong. Objects are not checked, because an object cannot be read before it is in its
    place.
    """

    def __init__(
        self,
        file: InputFile,
        parts: Iterable[bytes | OldRange],
        check: Callable[[InputFile], None] | None = None,
    ) -> None:
        super().__init__(
            path=file.path,
            location=file.location,
            name=file.name,
            size=file.size,
            identity=file.identity,
        )
        self._file = file
        self.parts = parts
        self._check = check

    def copy_to(self, fd: int, keep: int, tail: Sequence[bytes]) -> int:  # noqa: ARG002
        size = self._write_each(fd) if self.size <= TINY else self._write_beside(fd)
        if self._check is not None:
            with LocalFile(self.path, os.dup(fd)) as written:
                self._check(written)
        return size

    def _write_each(self, fd: int) -> int:
        size = 0
        for batch, length in _batches(self.parts):
            self._write(fd, batch, size, length)
            size += length
        return size

    def _write_beside(self, fd: int) -> int:
        """Compute the next parts while another thread writes the parts before them.

        Return the size.
        """
        size, held, under_way = 0, 0, deque[tuple[Future[None], int]]()
        # One thread: parts go to the disk in their order, and an error of one ends the file.
        with ThreadPoolExecutor(max_workers=1) as pool:
            for batch, length in _batches(self.parts):
                # Ranges of the old file are not held here, but they take the writer's time.
                room = min(length, _BATCH) if isinstance(batch, OldRange) else length
                while under_way and held + room > _HELD:
                    written, freed = under_way.popleft()
                    written.result()
                    held -= freed
                under_way.append((pool.submit(self._write, fd, batch, size, length), room))
                held += room
                size += length
                # Held by the one who writes it alone, while the next one is worked out.
                del batch
            for written, _ in under_way:
                written.result()
        return size

    def _write(self, fd: int, batch: Batch, at: int, length: int) -> None:
        if isinstance(batch, OldRange):
            self._copy(batch, fd, at)
        else:
            write_all(fd, batch, at)
        begin_writeback(fd, at, length)

    def chunks(self, keep: int, tail: Sequence[bytes]) -> Iterator[bytes]:  # noqa: ARG002
        for part in self.parts:
            if isinstance(part, OldRange):
                yield from self._pieces(part)
            else:
                yield part

    def _copy(self, part: OldRange, fd: int, at: int) -> None:
        source = self._file.descriptor
        if source is None:
            write_all(fd, self._pieces(part), at)
        else:
            copy_part(source, fd, part.offset, part.length, at)

    def _pieces(self, part: OldRange) -> Iterator[bytes]:
        end = part.offset + part.length
        for start in range(part.offset, end, _PIECE):
            yield self._file.read_at(start, min(_PIECE, end - start))

    def carry_attributes(self, fd: int) -> None:
        self._file.carry_attributes(fd)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._file.exclusive()

    def check_unchanged(self) -> None:
        self._file.check_unchanged()

    def close(self) -> None:
        self._file.close()

    def _read(self, offset: int, length: int) -> bytes:
        return self._file.read_at(offset, length)

    def _read_sibling(self, name: str, limit: int) -> bytes | None:  # noqa: ARG002 - the same
        return self._file.read_sibling(name)
