# The base class documents the methods.
# ruff: noqa: D102
"""CountedFile counts the bytes read from a file. OverlaidFile is a file with another tail.

An ``OverlaidFile`` shows a file as it would be after a rewrite that was planned but not carried
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from secure_bloom.storage.inputs import Extent, InputFile


class CountedFile(InputFile):
    """Reads another file and counts ``bytes_read`` and ``requests``.

    ``extents`` are the ranges that were read. A read that continues the read before makes its
    extent longer.
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

    def read_ahead(self, extents: Sequence[Extent], *, to_replace: bool = False) -> None:
        self._file.read_ahead(extents, to_replace=to_replace)

    def holds(self, offset: int, length: int) -> bool:
        return self._file.holds(offset, length)

    def repeats(self, content: bytes, offset: int, step: int, most: int) -> int:
        times = self._file.repeats(content, offset, step, most)
        for at in range(offset, offset + times * step, step):
            self._count(at, len(content))
        return times

    def close(self) -> None:
        self._file.close()

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


def covered(extents: Iterable[Extent]) -> int:
    """Return the number of bytes in the extents. A byte in several extents counts once."""
    size = reached = 0
    for start, end in sorted(extents):
        size += max(0, end - max(start, reached))
        reached = max(reached, end)
    return size


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
