"""A Python stream made from a function that reads bytes at an offset."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import cast


class PositionedStream(io.RawIOBase):
    """Reads ``size`` bytes by ``read_at(offset, length)``, which returns at most ``length``."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int) -> None:
        super().__init__()
        self._read_at, self._size, self._at = read_at, size, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: object) -> int:
        """Read once into the buffer. Return the number of bytes read, 0 at the end."""
        view = memoryview(cast("bytearray", buffer)).cast("B")
        length = max(0, min(len(view), self._size - self._at))
        content = self._read_at(self._at, length) if length else b""
        view[: len(content)] = content
        self._at += len(content)
        return len(content)
