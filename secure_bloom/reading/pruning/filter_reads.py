"""Read the Bloom filters that a predicate needs together, and check each once."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.split_block import Probe, SplitBlockBloomFilter
from secure_bloom.bloom.stored import decode_bloom_filter, encode_bloom_filter, read_bloom_filter
from secure_bloom.bloom.xxh64 import hash_value
from secure_bloom.encryption.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, located
from secure_bloom.options import MAX_BYTES
from secure_bloom.parquet.footer import Chunk
from secure_bloom.reading.table.coalesced_reads import GAP, LARGEST, read_extents
from secure_bloom.storage import InputFile

#: A row group and the ordinal of a column.
ChunkKey = tuple[int, int]

#: Up to so many values are checked one by one, without compiled code.
_FEW = 32
#: The most bytes that header and encryption add to a bitset.
_OVERHEAD = 2048


def has_filter(chunk: Chunk) -> bool:
    """Whether the chunk's metadata names a filter."""
    return chunk.meta_data.bloom_filter_offset is not None


class FilterLocation(NamedTuple):
    """The place of a filter according to its column chunk, and the cipher that decrypts it."""

    row_group: int
    column: str
    offset: int
    length: int
    cipher: ColumnCipher | None


def read_filters(
    file: InputFile, chunks: dict[ChunkKey, Chunk]
) -> dict[ChunkKey, SplitBlockBloomFilter]:
    """The filters of the chunks that have one, in few requests.

    Raises IntegrityError for a module that does not authenticate, with row group and column.
    """
    locations, found = {}, {}
    for location, chunk in chunks.items():
        offset, length = chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length
        if offset is not None and length is not None:
            column = chunk.leaf.name
            locations[location] = FilterLocation(
                chunk.row_group, column, offset, length, chunk.cipher
            )
            continue
        stored = read_bloom_filter(file, chunk)
        if stored is not None:
            found[location] = stored.filter
    at_places = read_filters_at(file, list(locations.values()))
    return found | dict(zip(locations, at_places, strict=True))


def read_filters_at(
    file: InputFile, locations: Sequence[FilterLocation]
) -> Iterator[SplitBlockBloomFilter]:
    """Like :func:`read_filters`, but the locations are known; filters come in their order.

    The bytes of all are read first; then they are decoded one by one, so that few are in memory.
    """
    for row_group, column, _, length, _ in locations:
        if not 0 < length <= MAX_BYTES + _OVERHEAD:
            raise FormatError(
                f"ColumnMetaData.bloom_filter_length is {length}",
                row_group=row_group,
                column=column,
            )
    stored = read_extents(file, {i: location[2:4] for i, location in enumerate(locations)})
    for i, (row_group, column, _, _, cipher) in enumerate(locations):
        with located(row_group=row_group, column=column):
            found = decode_bloom_filter(stored[i], cipher)
        yield found


@dataclass(slots=True, kw_only=True, eq=False)
class Hashes:
    """The hashes of the values of a lookup, made once for all filters."""

    hashes: tuple[int, ...] = field(repr=False)
    array: NDArray[np.uint64] = field(repr=False)
    _probes: tuple[Probe, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, encodings: Iterable[bytes]) -> Hashes:
        """The hashes of PLAIN encodings."""
        hashes = tuple(map(hash_value, encodings))
        return cls(hashes=hashes, array=np.array(hashes, np.uint64))

    def run(self, start: int, length: int) -> Hashes:
        """The ``length`` hashes from ``start`` on."""
        part = slice(start, start + length)
        return Hashes(hashes=self.hashes[part], array=self.array[part])

    def check_together(
        self,
        file: InputFile,
        locations: NDArray[np.int64],
        runs: NDArray[np.int64],
    ) -> list[bool | None] | None:
        """Whether each of many plain filters may have one of a run of the hashes.

        ``locations`` has rows of offset and length; ``runs`` has rows of start and end in the
        hashes.  None for a filter in an unusual form, and None for all if they lie far apart.
        """
        from secure_bloom.kernels import filters as kernels

        start, end, total = kernels.span(locations, file.size)
        if total < 0 or end - start > min(total + GAP, LARGEST):
            return None
        data = np.frombuffer(file.view_at(start, end - start), np.uint8)
        answers = np.empty(len(locations), np.uint8)
        kernels.ask(data, start, locations, _rest_of_header(), self.array, runs, answers)
        return [_ANSWERS[answer] for answer in answers.tolist()]

    def any_in(self, bloom_filter: SplitBlockBloomFilter) -> bool:
        """Whether the filter may have one of the values; False is certain."""
        if len(self.hashes) <= _FEW:
            if self._probes is None:
                self._probes = tuple(map(Probe.of, self.hashes))
            return any(map(bloom_filter.check_probe, self._probes))
        return bool(bloom_filter.check_hashes(self.array).any())


#: What the numbers 0, 1 and 2 of compiled code mean: no value passes, some value passes, unusual
#: filter.
_ANSWERS = (False, True, None)


@functools.cache
def _rest_of_header() -> NDArray[np.uint8]:
    """A header without its first field, ``numBytes``; the same for all filters."""
    empty = SplitBlockBloomFilter(1)
    header = encode_bloom_filter(empty, None)[: -empty.byte_count]
    return np.frombuffer(header[2:], np.uint8)
