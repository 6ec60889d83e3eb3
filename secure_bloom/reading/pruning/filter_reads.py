"""Read the Bloom filters that a predicate needs together, and check each once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.split_block import Probe, SplitBlockBloomFilter
from secure_bloom.bloom.stored import (
    decode_bloom_filter,
    encode_bloom_filter,
    encoded_header,
    read_bloom_filter,
)
from secure_bloom.calling.options import MAX_BYTES
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, located
from secure_bloom.kernels import extension, numpy_loops
from secure_bloom.kernels.loops import hash_each
from secure_bloom.parquet.file_ciphers import bounds_of, open_run
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.reading.table.coalesced_reads import GAP, read_extents, read_pooled
from secure_bloom.storage import InputFile

#: A row group and the ordinal of a column.
ChunkKey = tuple[int, int]

#: Up to this many values are checked one by one, without the C extension.
_FEW = 32
#: The most bytes that header and encryption add to a bitset.
_OVERHEAD = 2048


def has_filter(chunk: Chunk) -> bool:
    """Return whether the chunk's metadata names a filter."""
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
    """Return the filters of the chunks that have one, in few requests.

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
    """Like :func:`read_filters`, for known locations. Yields filters in their order.

    The bytes of all are read first. Then they are decoded one by one, so that few are in memory.
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
    """The hashes of the values of a lookup, computed once for all filters."""

    array: NDArray[np.uint64] = field(repr=False)
    _probes: tuple[Probe, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, encodings: Sequence[bytes]) -> Hashes:
        """Return the hashes of PLAIN encodings."""
        return cls(array=hash_each(encodings))

    def run(self, start: int, length: int) -> Hashes:
        """Return the ``length`` hashes from ``start`` on."""
        return Hashes(array=self.array[start : start + length])

    def any_in(self, bloom_filter: SplitBlockBloomFilter) -> bool:
        """Return whether the filter may have one of the values. False is certain."""
        if len(self.array) <= _FEW:
            if self._probes is None:
                self._probes = tuple(map(Probe.of, self.array.tolist()))
            return any(map(bloom_filter.check_probe, self._probes))
        return bool(bloom_filter.check_hashes(self.array).any())


def ask_together(
    file: InputFile,
    places: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    runs: NDArray[np.int64],
    cipher: ColumnCipher | None,
    ordinals: Sequence[int],
) -> list[bool | None] | None:
    """Return, by the extension, whether each filter of a column may have one of a range of hashes.

    ``places`` has rows of offset and length, ``runs`` rows of start and end in the hashes.  The
    filters are those of the row groups with these ``ordinals``, under one key.  The answer is None
    for a filter in an unusual form. None is returned instead of all answers if filters are large,
    out of order or damaged: then :func:`read_filters_at` reads them, or raises the error.
    """
    if (places[:, 1] > _LARGEST_TOGETHER).any():
        return None
    answers = np.empty(len(places), np.uint8)
    for run in filter_runs(file, places, cipher, ordinals):
        if run is None:
            return None
        part = run.part
        answers[part] = ask_filters(
            run.data, run.bounds, hashes, runs[part], base=run.base, is_opened=run.is_opened
        )
    return [_ANSWERS[answer] for answer in answers.tolist()]


class FilterRun(NamedTuple):
    """Filters that were read together, ``part`` of all; ``bounds`` are as the extension wants them.

    ``data`` starts at ``base`` in the file.  It ``is_opened`` if its modules were decrypted.
    """

    part: slice
    data: bytes | memoryview
    base: int
    bounds: NDArray[np.int64]
    is_opened: bool


def filter_runs(
    file: InputFile,
    places: NDArray[np.int64],
    cipher: ColumnCipher | None,
    ordinals: Sequence[int],
) -> Iterator[FilterRun | None]:
    """Yield the filters at ``places``, some at a time; None if they are out of order or damaged."""
    extents = places.copy()
    extents[:, 1] += extents[:, 0]
    reads = joined_extents(extents.tolist(), file.size, GAP, _LARGEST_TOGETHER)
    if reads is None:
        yield None
        return
    for start, end, first, until in reads:
        part, bounds = slice(first, until), extents[first:until]
        data: bytes | memoryview = read_pooled(file, start, end - start)
        if cipher is None:
            yield FilterRun(part, data, start, bounds, False)
            continue
        opened = open_run(cipher, data, start, bounds, _MODULES, ordinals[part])
        if opened is None:
            yield None
            return
        yield FilterRun(part, b"".join(opened), 0, bounds_of(opened), True)


def ask_filters(
    data: bytes | memoryview | NDArray[np.uint8],
    bounds: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    runs: NDArray[np.int64],
    *,
    base: int = 0,
    is_opened: bool = False,
) -> NDArray[np.uint8]:
    """Return the answer of each filter for a run of the hashes: one of the ``ANSWER`` numbers."""
    answers = np.empty(len(runs), np.uint8)
    ask = (extension.native or numpy_loops).ask
    ask(data, base, bounds, is_opened, _rest_of_header(), hashes, runs, answers)
    return answers


def store_filters(
    file: InputFile,
    places: NDArray[np.int64],
    cipher: ColumnCipher | None,
    ordinals: Sequence[int],
    into: NDArray[np.uint8],
) -> list[int] | None:
    """Store the filters at ``places`` in clear, each a header and a bitset, one after the other.

    ``into`` has room for their stored bytes.  Return the length of each, or None if filters are out
    of order or damaged.
    """
    offsets, lengths = places.T
    if cipher is None and (offsets[1:] == offsets[:-1] + lengths[:-1]).all():
        file.read_into(int(offsets[0]), into[: lengths.sum()].data)
        return cast("list[int]", lengths.tolist())
    stored, at = list[int](), 0
    for run in filter_runs(file, places, cipher, ordinals):
        if run is None:
            return None
        for content in _in_clear(run):
            if content is None:
                return None
            into[at : at + len(content)] = np.frombuffer(content, np.uint8)
            stored.append(len(content))
            at += len(content)
    return stored


def _in_clear(run: FilterRun) -> Iterator[bytes | memoryview | None]:
    """Yield header and bitset of each filter of a run, or None for a header in an unusual form."""
    view, bounds = memoryview(run.data), (run.bounds - run.base).tolist()
    if not run.is_opened:
        yield from (view[start:end] for start, end in bounds)
        return
    for start, middle, end in zip(bounds[:-1:2], bounds[1::2], bounds[2::2], strict=True):
        header = encoded_header(end - middle)
        # Writers may pad a header; nothing else may be there.
        is_usual = bytes(view[start:middle])[: len(header)] == header
        yield header + bytes(view[middle:end]) if is_usual else None


def joined_extents(
    extents: Sequence[Sequence[int]], size: int, gap: int, largest: int
) -> list[tuple[int, int, int, int]] | None:
    """Return reads that each cover extents close to each other.

    A read is its start, its end, its first extent, and the extent after its last. Return None if
    extents do not ascend, or leave the file of ``size`` bytes.
    """
    reads: list[tuple[int, int, int, int]] = []
    begin = first = last = 0
    for number, (start, end) in enumerate(extents):
        if not last <= start < end <= size:
            return None
        if number > 0 and (start - last > gap or end - begin > largest):
            reads.append((begin, last, first, number))
            first = number
        if number == first:
            begin = start
        last = end
    return [*reads, (begin, last, first, len(extents))] if extents else []


#: The modules of an encrypted filter, in their order.
_MODULES = (ModuleType.BLOOM_FILTER_HEADER, ModuleType.BLOOM_FILTER_BITSET)
#: Most bytes of filters that are read, or decrypted, at once.
_LARGEST_TOGETHER = 1024 * 1024
#: The extension's answers: no value passes, some value passes, an unusual filter.
ANSWER_NONE, ANSWER_SOME, ANSWER_UNUSUAL = range(3)
#: What the extension's answers 0, 1 and 2 mean: no value passes, some value passes, an unusual
#: filter.
_ANSWERS = (False, True, None)


@functools.cache
def _rest_of_header() -> bytes:
    """Return a header without its first field, ``numBytes``. It is the same for all filters."""
    empty = SplitBlockBloomFilter(1)
    header = encode_bloom_filter(empty, None)[: -empty.byte_count]
    return header[2:]
