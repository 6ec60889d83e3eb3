# The base class documents the methods.
# ruff: noqa: D102
"""A file as it is to become: parts that are new, and ranges of the old file that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from secure_bloom.storage.copy_range import copy_part
from secure_bloom.storage.durable_writes import write_all
from secure_bloom.storage.inputs import InputFile

#: A range that is copied through this process goes in pieces of at most this size.
_PIECE = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OldRange:
    """Bytes of the old file that go into the new one as they are."""

    offset: int
    length: int


class RewrittenFile(InputFile):
    """Another file that is copied as ``parts`` say, which are worked out while they are written.

    ``parts`` may be gone through once.  Hand it to :func:`.dispatch.replace_tail` with nothing to
    keep and no tail.
    """

    def __init__(self, file: InputFile, parts: Iterable[bytes | OldRange]) -> None:
        super().__init__(
            path=file.path,
            location=file.location,
            name=file.name,
            size=file.size,
            identity=file.identity,
        )
        self._file = file
        self._parts = parts

    def copy_to(self, fd: int, keep: int, tail: Sequence[bytes]) -> int:  # noqa: ARG002
        size = 0
        for part in self._parts:
            if isinstance(part, OldRange):
                size = self._copy(part, fd, size)
            else:
                size = write_all(fd, [part], size)
        return size

    def chunks(self, keep: int, tail: Sequence[bytes]) -> Iterator[bytes]:  # noqa: ARG002
        for part in self._parts:
            if isinstance(part, OldRange):
                yield from self._pieces(part)
            else:
                yield part

    def _copy(self, part: OldRange, fd: int, size: int) -> int:
        source = self._file.descriptor
        if source is None:
            return write_all(fd, self._pieces(part), size)
        copy_part(source, fd, part.offset, part.length, size)
        return size + part.length

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
