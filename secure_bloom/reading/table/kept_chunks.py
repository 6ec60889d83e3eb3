"""Keep the places of data pages and the hashes of values for the next lookups of an open table.

    kept = KeptChunks.of(memory)
    kept.places.keep(key, places)       where the data pages of a chunk are
    kept.places.of(key)                 the same for the next lookup: it reads only pages with rows
    kept.hashes.keep(key, digests)      all values of a chunk in which a lookup found nothing
    kept.hashes.of(key)                 the next false answer of its filter costs no read

A place takes 32 bytes: the page's offset and length in the file, its first row in the row group,
and the row after its last one.  A digest takes four bytes: the lower half of the value's hash.
Places and digests belong to one state of the table. If another file is at the path, opening it
raises an error.  A page that is read must have the number of rows that its place says.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from secure_bloom.running.memory_budget import MemoryAccount

    #: A row for each data page: offset, length, first row, and row after the last one.
    Places = NDArray[np.int64]
    #: The digests of values, ascending.
    Digests = NDArray[np.uint32]

#: A chunk: the path of its file, its row group and its column.
ChunkKey = tuple[str, int, int]
#: What Python takes for an array, beside its numbers.
_BESIDE: Final = 256
#: The parts of the memory that places and digests may take: filters rule out more.
_PLACES, _DIGESTS = 8, 4


class ChunkArrays:
    """An array for each chunk, as far as they fit into one ``part``-th of the memory.

    The least recently used is dropped first.
    """

    def __init__(self, memory: MemoryAccount, part: int) -> None:
        self._memory = memory
        self._most = memory.most // part
        self._lock = threading.Lock()
        self._kept: dict[ChunkKey, NDArray[Any]] = {}
        self.used = 0

    def of(self, key: ChunkKey) -> NDArray[Any] | None:
        """Return the array of a chunk, or None if it is not kept."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is not None:
                # Put back as the last one: the one that was used last.
                self._kept[key] = found
            return found

    def keep(self, key: ChunkKey, array: NDArray[Any]) -> None:
        """Keep the array of a chunk, if there is memory."""
        size = _size(array)
        with self._lock:
            if key in self._kept or not self._has_room(size):
                return
            self._kept[key] = array
            self.used += size

    def _has_room(self, size: int) -> bool:
        while self.used + size > self._most or not self._memory.take(size):
            oldest = next(iter(self._kept), None)
            if oldest is None or size > self._most:
                return False
            dropped = _size(self._kept.pop(oldest))
            self.used -= dropped
            self._memory.give_back(dropped)
        return True


def _size(array: NDArray[Any]) -> int:
    return array.nbytes + _BESIDE


@dataclass(frozen=True, slots=True)
class KeptChunks:
    """The places of data pages, and the digests of values, of the chunks of a table."""

    places: ChunkArrays
    hashes: ChunkArrays

    @classmethod
    def of(cls, memory: MemoryAccount) -> Self:
        """Return an empty one, which counts its arrays in ``memory``."""
        return cls(ChunkArrays(memory, _PLACES), ChunkArrays(memory, _DIGESTS))
