"""``DYNAMIC_V0``: rows of bits that are added as keys are inserted, up to a limit.

    header | i32 nr | i32 currentNbRecord | i32 rows | rows x (header | bits)

A row is full after ``nr`` keys.  While ``rows * nr`` is below ``max_entries``, a new row is added.
When that limit is reached, the next key goes to row 0, and later keys go to rows 0, 1, 2, ... in
turn. From then on the size stays the same, and false positives grow evenly.

Neither the limit nor the turn is stored: a parsed filter fills its current row, then takes turns.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import ClassVar

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.hudi.record_keys.bloom_filter import (
    INT_MAX,
    Header,
    HudiBloomFilter,
    Run,
    decode_row,
    encode_row,
    header_for,
    unpack,
)
from secure_bloom.hudi.record_keys.packed_keys import HashType

_COUNTS = ">iii"
#: The least bytes of a row: a header in its old form, which is the shorter one, and a byte of bits.
_MIN_ROW = 9
#: The most rows, because a key is looked for in every row.  Hudi's default bound gives at most
#: 100,000.
_MAX_ROWS = 1 << 17


@checked_arguments
def require_bound(max_entries: int) -> None:
    """Raise PolicyError for a limit that cannot be a number of keys."""
    if max_entries < 0:
        raise PolicyError(f"max_entries is {max_entries}, it cannot be negative")


class DynamicBoundedBloomFilter(HudiBloomFilter):
    """A filter made for ``num_entries`` keys, which grows until it has room for ``max_entries``.

    ``fpp`` is the probability for one full row.  Raises PolicyError unless 1 <= num_entries < 2^31,
    0 < fpp < 1 and 0 <= max_entries.
    """

    __slots__ = ("_bound_reached", "_current", "_max_entries", "_nr", "_turn")
    TYPE_CODE: ClassVar[str] = "DYNAMIC_V0"

    @checked_arguments
    def __init__(
        self,
        num_entries: int,
        fpp: float,
        max_entries: int,
        *,
        hash_type: HashType | str = HashType.MURMUR,
    ) -> None:
        header = header_for(num_entries, fpp, hash_type)
        require_bound(max_entries)
        self._start(header, bytearray(header.row_bytes), nr=num_entries, current=0)
        self._max_entries = max_entries

    def _start(self, header: Header, bits: bytearray, *, nr: int, current: int) -> None:
        HudiBloomFilter.__init__(self, header, bits)
        self._nr = nr
        self._current = current
        # The bound of a filter that was parsed, as it is not stored.
        self._max_entries = 0
        self._bound_reached = False
        self._turn = 0

    @property
    def nr(self) -> int:
        """Number of keys that fill a row."""
        return self._nr

    @property
    def current(self) -> int:
        """Number of keys inserted since the last row was added, ``currentNbRecord``."""
        return self._current

    def to_bytes(self) -> bytes:
        """Return header, counts and rows."""
        size = self._header.row_bytes
        rows = (self._bits[start : start + size] for start in range(0, len(self._bits), size))
        counts = struct.pack(_COUNTS, self._nr, self._current, self.rows)
        stored = (encode_row(self._header, row) for row in rows)
        return b"".join([self._header.encode(), counts, *stored])

    @classmethod
    @checked_arguments
    def from_bytes(cls, stored: bytes) -> DynamicBoundedBloomFilter:
        """Return the filter at the start of ``stored``. Its limit is 0."""
        view = memoryview(stored)
        header, length = Header.decode(view)
        nr, current, rows = unpack(_COUNTS, view[length:])
        view = view[length + struct.calcsize(_COUNTS) :]
        # `current` may exceed `nr`: once the bound is reached, it keeps counting.
        if nr < 1 or current < 0:
            raise FormatError(
                f"the filter says that its last row has {current} of at most {nr} keys, wanted at "
                "least 0 of at least 1"
            )
        # Checked before the rows are read, because their number comes from the file.
        if not 1 <= rows <= len(view) // _MIN_ROW:
            raise FormatError(f"the filter says it has {rows} rows, {len(view)} bytes remain")
        if rows > _MAX_ROWS:
            raise UnsupportedFeatureError(f"the filter has {rows} rows, wanted at most {_MAX_ROWS}")
        loaded = cls.__new__(cls)
        loaded._start(header, _decode_rows(view, header, rows), nr=nr, current=current)
        return loaded

    def _runs(self, count: int) -> Iterator[Run]:
        if self._current + count > INT_MAX:
            raise PolicyError(f"the filter counts to {INT_MAX}, no more keys fit")
        while count:
            run = self._next_run(count)
            self._current += run.count
            count -= run.count
            yield run

    def _next_run(self, count: int) -> Run:
        if self._bound_reached:
            row, self._turn = self._turn, (self._turn + count) % self.rows
            return Run(row=row, count=count, stride=1)
        # Looked at when the next key comes, as Hudi does, and not when a row is full: else the
        # bytes would differ.
        if self._current >= self._nr:
            # Hudi counts the rows that are there, so the last one may go beyond the bound.
            if self.rows * self._nr >= self._max_entries:
                self._bound_reached = True
                # One key for row 0 outside of the turn, which then begins at row 0 again.
                return Run(row=0, count=1)
            self._bits += bytes(self._header.row_bytes)
            self._current = 0
        return Run(row=self.rows - 1, count=min(count, self._nr - self._current))


def _decode_rows(view: memoryview, header: Header, rows: int) -> bytearray:
    """Return the bits of all rows. Raises FormatError unless all have one shape."""
    every = bytearray()
    for _ in range(rows):
        own, bits, length = decode_row(view)
        # Hudi makes all rows of a filter by one sizing, and the kernels take them as one array.
        if own != header:
            raise UnsupportedFeatureError("the rows of the filter are not of one shape")
        every += bits
        view = view[length:]
    return every
