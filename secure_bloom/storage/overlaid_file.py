# The base class documents the methods.
# ruff: noqa: D102
"""A file as it would be after a rewrite that was planned and not carried out."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.storage.inputs import InputFile


class OverlaidFile(InputFile):
    """The first ``keep`` bytes of another file, then ``tail``, which is held in memory."""

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
