"""Roaring bitmaps in their portable format, read as one number: bit ``i`` is row ``i``.

    cookie 12346 (4) | containers (4)
    or cookie 12347 (2) | containers - 1 (2) | one bit per container: is it of runs
    each container: high half of its rows (2) | rows - 1 (2)
    place of each container (4): always with the first cookie, else from 4 containers on
    containers: up to 4,096 rows an array of low halves (2 each), more a bit set (8,192)
                of runs: runs (2), each: first (2) | rows - 1 (2)

Numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from secure_bloom.errors import FormatError, UnsupportedFeatureError

#: The most rows of a file.  A bitmap takes a bit for each row here, even if the file stores it in
#: a few bytes.
MAX_ROWS = 1 << 27

_WITHOUT_RUNS = 12346
_WITH_RUNS = 12347
_MAX_ARRAY = 4096
_CONTAINER_ROWS = 1 << 16
_CONTAINER_BYTES = _CONTAINER_ROWS // 8
#: A bitmap with runs and fewer containers than this has no places.
_MIN_PLACES = 4


def read_rows(data: memoryview, rows: int) -> int:
    """Return the rows of the bitmap at the start of ``data`` as one number.

    Raises FormatError for a damaged bitmap, or for a row that is not below ``rows``.
    """
    require_rows(rows)
    reader = _RoaringReader(data)
    last_high = -1
    content = bytearray(-(-rows // _CONTAINER_ROWS) * _CONTAINER_BYTES)
    for high, container in reader.containers():
        start = high * _CONTAINER_BYTES
        if high <= last_high or start >= len(content):
            raise FormatError(f"a bitmap has a container {high} after {last_high}, of {rows} rows")
        content[start : start + _CONTAINER_BYTES] = container.to_bytes(_CONTAINER_BYTES, "little")
        last_high = high
    found = int.from_bytes(content, "little")
    if found >> rows:
        raise FormatError(f"a bitmap has rows that are not among the {rows} of the file")
    return found


def require_rows(rows: int) -> None:
    """Raise an error for a negative number of rows, and for more rows than are read here."""
    if rows < 0:
        raise FormatError(f"a bitmap index is of {rows} rows")
    if rows > MAX_ROWS:
        raise UnsupportedFeatureError(
            f"a bitmap index is of {rows} rows, at most {MAX_ROWS} are read"
        )


class _RoaringReader:
    """Reads a bitmap from its first byte on."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def containers(self) -> Iterator[tuple[int, int]]:
        """Yield, for each container, the high half of its rows and the low halves as bits."""
        count, of_runs = self._cookie()
        heads = self._shorts(2 * count)
        if not of_runs or count >= _MIN_PLACES:
            self._take(4 * count)  # the containers stand one behind the other
        for ordinal in range(count):
            high, rows = heads[2 * ordinal], heads[2 * ordinal + 1] + 1
            yield high, self._runs() if of_runs >> ordinal & 1 else self._container(rows)

    def _cookie(self) -> tuple[int, int]:
        """Return the number of containers, and a number whose bits say which of them have runs."""
        # Four bytes, little-endian.  With runs the upper two count containers, less one; else 0.
        cookie, following = self._shorts(2)
        if cookie == _WITH_RUNS:
            count = following + 1
            return count, int.from_bytes(self._take(-(-count // 8)), "little")
        if (cookie, following) == (_WITHOUT_RUNS, 0):
            return int.from_bytes(self._take(4), "little"), 0
        raise FormatError("a bitmap does not start with a known cookie")

    def _container(self, rows: int) -> int:
        if rows > _MAX_ARRAY:
            return int.from_bytes(self._take(_CONTAINER_BYTES), "little")
        content = bytearray(_CONTAINER_BYTES)
        for row in self._shorts(rows):
            content[row >> 3] |= 1 << (row & 7)
        return int.from_bytes(content, "little")

    def _runs(self) -> int:
        (count,) = self._shorts(1)
        ends = self._shorts(2 * count)
        found = 0
        for first, more in zip(ends[::2], ends[1::2], strict=True):
            if first + more >= _CONTAINER_ROWS:
                raise FormatError("a bitmap has a run that leaves its container")
            # `more` rows follow the first one: more + 1 bits.
            found |= ((2 << more) - 1) << first
        return found

    def _shorts(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}H", self._take(2 * count))

    def _take(self, length: int) -> memoryview:
        end = self._at + length
        if end > len(self._data):
            raise FormatError(f"a bitmap ends after {len(self._data)} bytes, wanted {end}")
        self._at, taken = end, self._data[self._at : end]
        return taken
