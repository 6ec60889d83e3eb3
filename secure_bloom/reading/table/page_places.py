"""Where the data pages of column chunks are, kept by an open table for its next lookups.

    places = PagePlaces(memory)
    places.keep(path, chunk, found)     what a lookup located: by page headers, or the offset index
    places.of(path, chunk)              the same for the next one, which reads only pages with rows

A place takes 32 bytes: the page's offset and length in the file, its first row in the row group,
and the row after its last one.  Places belong to one state of the table. If another file is at the
path, opening it raises an error.  A page that is read must have the rows of its place.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from secure_bloom.parquet.footer.chunks import Chunk
    from secure_bloom.running.memory_budget import MemoryAccount

    #: A row for each data page: offset, length, first row, and row after the last one.
    Places = NDArray[np.int64]

#: What Python takes for the places of a chunk, beside their numbers.
_BESIDE: Final = 256
#: The part of the memory that places may take: filters rule out more.
_PART: Final = 8


class PagePlaces:
    """The places that fit into a part of the memory, the least recently used dropped first."""

    def __init__(self, memory: MemoryAccount) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int, int], Places] = {}
        self.used = 0

    def of(self, path: str, chunk: Chunk) -> Places | None:
        """Return the places of the data pages of a chunk, or None if they are not kept."""
        key = (path, chunk.row_group, chunk.column)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                # Put back as the last one: the one that was used last.
                self._kept[key] = found
            return found

    def keep(self, path: str, chunk: Chunk, places: Places) -> None:
        """Keep the places of the data pages of a chunk, if there is memory."""
        key, size = (path, chunk.row_group, chunk.column), _size(places)
        with self._lock:
            if key in self._kept or not self._has_room(size):
                return
            self._kept[key] = places
            self.used += size

    def _has_room(self, size: int) -> bool:
        most = self._memory.most // _PART
        while self.used + size > most or not self._memory.take(size):
            oldest = next(iter(self._kept), None)
            if oldest is None or size > most:
                return False
            dropped = _size(self._kept.pop(oldest))
            self.used -= dropped
            self._memory.give_back(dropped)
        return True


def _size(places: Places) -> int:
    return places.nbytes + _BESIDE
