"""Read the numbers in roaring bitmaps of 64 bits.

    64 bits   count (8) | count times: the upper 32 bits (4) | a bitmap of 32 bits
    32 bits   12346 (4) | containers (4) | keys | offsets | data
              12347 (2) | containers - 1 (2) | which are runs | keys | offsets, if 4 or more | data
    keys      for each container: the upper 16 bits (2) | how many numbers - 1 (2)
    data      an array of up to 4,096 numbers (2 each), runs (2, then 2 + 2 each), or 65,536 bits

All numbers are little-endian.  https://github.com/RoaringBitmap/RoaringFormatSpec.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import FormatError

_NO_RUNS, _WITH_RUNS = 12346, 12347
#: From so many containers on, a bitmap with runs has offsets too.
_OFFSETS_FROM: Final = 4
_LONGEST_ARRAY: Final = 4096
_BITSET_BYTES: Final = 8192
_U16 = np.dtype("<u2")


def positions(data: bytes, *, most: int) -> NDArray[np.int64]:
    """Return the numbers in a bitmap, ascending.

    Raises FormatError for a damaged bitmap, or for more than ``most`` numbers.
    """
    cursor = _Cursor(data)
    parts: list[NDArray[np.int64]] = []
    last_key = -1
    for _ in range(cursor.number(8)):
        key = cursor.number(4)
        # Positions are signed numbers of 64 bits, so the upper half ends at 2^31.
        if not last_key < key < 2**31:
            raise FormatError("the parts of a bitmap are out of order")
        last_key = key
        found = _bitmap32(cursor, sum(map(len, parts)), most)
        parts.append(found + (key << 32))
    if cursor.left:
        raise FormatError(f"{cursor.left} bytes follow a bitmap")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Cursor:
    """Bytes that are read one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._at

    def bytes(self, count: int) -> bytes:
        """Return the next bytes. Raises FormatError if there are too few."""
        if count > self.left:
            raise FormatError(f"a bitmap wants {count} bytes, {self.left} are left")
        start, self._at = self._at, self._at + count
        return self._data[start : self._at]

    def number(self, width: int) -> int:
        """Return the next number."""
        return int.from_bytes(self.bytes(width), "little")

    def numbers(self, count: int) -> NDArray[np.int64]:
        """Return the next numbers of two bytes."""
        return np.frombuffer(self.bytes(2 * count), _U16).astype(np.int64)


def _bitmap32(cursor: _Cursor, before: int, most: int) -> NDArray[np.int64]:
    count, are_runs, has_offsets = _cookie(cursor)
    keys = cursor.numbers(2 * count).reshape(-1, 2)
    # One less is stored here too, so that 65,536 numbers fit into two bytes.
    sizes = keys[:, 1] + 1
    # Checked before any container is built: a run of a few bytes stands for 65,536 numbers.
    if before + int(sizes.sum()) > most:
        raise FormatError(f"a bitmap has more than {most} numbers")
    if (np.diff(keys[:, 0]) <= 0).any():
        raise FormatError("the containers of a bitmap are out of order")
    if has_offsets:
        # Offsets of containers: passed over, because all containers are read in their order.
        cursor.bytes(4 * count)
    parts = [
        (int(key) << 16) + _container(cursor, int(size), is_run=bool(is_run))
        for key, size, is_run in zip(keys[:, 0], sizes, are_runs, strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _cookie(cursor: _Cursor) -> tuple[int, NDArray[np.bool_], bool]:
    """Return the number of containers, which of them have runs, and whether offsets follow."""
    cookie = cursor.number(2)
    if cookie == _WITH_RUNS:
        # One less is stored: no bitmap with runs is empty.
        count = cursor.number(2) + 1
        marks = np.frombuffer(cursor.bytes((count + 7) // 8), np.uint8)
        are_runs = np.unpackbits(marks, bitorder="little")[:count].astype(np.bool_)
        return count, are_runs, count >= _OFFSETS_FROM
    # This cookie has four bytes, the other one two: the upper half is zero here, and a count there.
    if cookie == _NO_RUNS and cursor.number(2) == 0:
        count = cursor.number(4)
        return count, np.zeros(min(count, 2**16), np.bool_), True
    raise FormatError("a bitmap does not begin with a known cookie")


def _container(cursor: _Cursor, size: int, *, is_run: bool) -> NDArray[np.int64]:
    if is_run:
        found = _runs(cursor, size)
    elif size <= _LONGEST_ARRAY:
        found = cursor.numbers(size)
    else:
        bits = np.frombuffer(cursor.bytes(_BITSET_BYTES), np.uint8)
        found = np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)
    if len(found) != size:
        raise FormatError(f"a container has {len(found)} numbers, wanted {size}")
    if (np.diff(found) <= 0).any():
        raise FormatError("the numbers of a container are out of order")
    return found


def _runs(cursor: _Cursor, size: int) -> NDArray[np.int64]:
    """Return the numbers in runs: each run has its first number, and how many follow."""
    runs = cursor.numbers(2 * cursor.number(2)).reshape(-1, 2)
    first, more = runs[:, 0], runs[:, 1]
    if int(more.sum()) + len(runs) != size or (first + more >= 2**16).any():
        raise FormatError("the runs of a container do not add up")
    if not len(runs):
        return np.empty(0, np.int64)
    return np.concatenate([np.arange(a, a + b + 1) for a, b in runs.tolist()])
