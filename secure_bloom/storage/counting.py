# The base class documents the methods.
# ruff: noqa: D102
"""A file whose bytes are counted as they are read."""

from __future__ import annotations

from secure_bloom.storage.inputs import InputFile


class CountedFile(InputFile):
    """Another file; ``bytes_read`` and ``requests`` say what was read through this one."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(
            path=file.path,
            location=file.location,
            name=file.name,
            size=file.size,
            identity=file.identity,
        )
        self._file = file
        self.bytes_read = 0
        self.requests = 0

    def check_unchanged(self) -> None:
        self._file.check_unchanged()

    def close(self) -> None:
        self._file.close()

    def _read(self, offset: int, length: int) -> bytes:
        self.bytes_read += length
        self.requests += 1
        return self._file.read_at(offset, length)

    def _read_sibling(self, name: str, limit: int) -> bytes | None:  # noqa: ARG002 - the same
        return self._file.read_sibling(name)
