"""The Bloom filters of a file that a predicate asks, read together and asked once each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom import decode_bloom_filter, read_bloom_filter
from secure_bloom.errors import FormatError, located
from secure_bloom.footer import Chunk
from secure_bloom.options import MAX_BYTES
from secure_bloom.reading.extents import read_extents
from secure_bloom.sbbf import Probe, SplitBlockBloomFilter
from secure_bloom.storage import InputFile
from secure_bloom.xxh64 import hash_value

#: A row group and the ordinal of a column.
Place = tuple[int, int]

#: Fewer values are looked up one by one, which needs no compiled code.
_FEW = 32
#: What header and encryption may add to a bitset.
_OVERHEAD = 2048


def has_filter(chunk: Chunk) -> bool:
    """Whether the chunk's metadata names a filter."""
    return chunk.meta_data.bloom_filter_offset is not None


def read_filters(file: InputFile, chunks: dict[Place, Chunk]) -> dict[Place, SplitBlockBloomFilter]:
    """The filters of the chunks that have one, in as few requests as their places allow.

    Raises IntegrityError for a module that does not authenticate, with row group and column.
    """
    extents, found = {}, {}
    for place, chunk in chunks.items():
        offset, length = chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length
        if offset is None or length is None:
            stored = read_bloom_filter(file, chunk)
            if stored is not None:
                found[place] = stored.filter
            continue
        with located(row_group=chunk.row_group, column=chunk.leaf.name):
            if not 0 < length <= MAX_BYTES + _OVERHEAD:
                raise FormatError(f"ColumnMetaData.bloom_filter_length is {length}")
        extents[place] = (offset, length)
    for place, content in read_extents(file, extents).items():
        chunk = chunks[place]
        with located(row_group=chunk.row_group, column=chunk.leaf.name):
            found[place] = decode_bloom_filter(content, chunk.cipher)
    return found


@dataclass(slots=True, kw_only=True, eq=False)
class Hashes:
    """The hashes of the values that are looked for, made once for all filters."""

    hashes: tuple[int, ...] = field(repr=False)
    array: NDArray[np.uint64] = field(repr=False)
    _probes: tuple[Probe, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, encodings: Iterable[bytes]) -> Hashes:
        """The hashes of PLAIN encodings."""
        hashes = tuple(map(hash_value, encodings))
        return cls(hashes=hashes, array=np.array(hashes, np.uint64))

    def run(self, start: int, length: int) -> Hashes:
        """Some of the hashes that stand together."""
        part = slice(start, start + length)
        return Hashes(hashes=self.hashes[part], array=self.array[part])

    def any_in(self, bloom_filter: SplitBlockBloomFilter) -> bool:
        """Whether the filter may have one of the values; False is certain."""
        if len(self.hashes) <= _FEW:
            if self._probes is None:
                self._probes = tuple(map(Probe.of, self.hashes))
            return any(map(bloom_filter.check_probe, self._probes))
        return bool(bloom_filter.check_hashes(self.array).any())
