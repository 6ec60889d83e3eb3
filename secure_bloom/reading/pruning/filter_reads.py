"""Read the Bloom filters that a predicate needs together, and check each once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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


def read_filters(
    file: InputFile, chunks: dict[ChunkKey, Chunk]
) -> dict[ChunkKey, SplitBlockBloomFilter]:
    """Return the filters of the chunks that have one, in few requests.

    Raises IntegrityError for a module that does not authenticate, with row group and column.
    """
    extents, found = {}, {}
    for key, chunk in chunks.items():
        offset, length = chunk.meta_data.bloom_filter_offset, chunk.meta_data.bloom_filter_length
        if offset is None or length is None:
            stored = read_bloom_filter(file, chunk)
            if stored is not None:
                found[key] = stored.filter
        elif not 0 < length <= MAX_BYTES + _OVERHEAD:
            raise FormatError(
                f"ColumnMetaData.bloom_filter_length is {length}, "
                f"wanted 1 to {MAX_BYTES + _OVERHEAD}",
                row_group=chunk.row_group,
                column=chunk.leaf.name,
            )
        else:
            extents[key] = offset, length
    contents = read_extents(file, extents)
    for key in extents:
        chunk = chunks[key]
        with located(row_group=chunk.row_group, column=chunk.leaf.name):
            found[key] = decode_bloom_filter(contents[key], chunk.cipher)
    return found


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


class FilterPlaces(NamedTuple):
    """The places of filters of one column of a file, all under one key.

    ``places`` has an offset and a length in each row. ``ordinals`` are the row groups of the
    filters.
    """

    places: NDArray[np.int64]
    cipher: ColumnCipher | None
    ordinals: NDArray[np.int64]


def ask_together(
    file: InputFile,
    columns: Sequence[FilterPlaces],
    asked: Sequence[tuple[NDArray[np.uint64], NDArray[np.int64]]],
) -> list[NDArray[np.uint8]] | None:
    """Return the answers of the filters of some columns, which are read together.

    ``asked`` has for each column an array of hashes, and for each filter the start and end of its
    hashes in the array. Return None if filters are large, overlap or are damaged: then
    :func:`read_filters` reads them, or raises the error. With several columns, also return None
    if any filter has an unusual form: it may be damaged, and damage is an error even if another
    column rules the row group out.
    """
    if any((column.places[:, 1] > _LARGEST_TOGETHER).any() for column in columns):
        return None
    answers = [np.empty(len(column.places), np.uint8) for column in columns]
    for run in filter_runs(file, columns):
        if run is None:
            return None
        hashes, runs = asked[run.column]
        answers[run.column][run.part] = ask_filters(
            run.data, run.bounds, hashes, runs[run.part], base=run.base, is_opened=run.is_opened
        )
    if len(columns) > 1 and any((of_column == ANSWER_UNUSUAL).any() for of_column in answers):
        return None
    return answers


class FilterRun(NamedTuple):
    """Filters of a column that were read together. ``part`` has their indices in the column.

    ``data`` starts at offset ``base`` in the file.  ``bounds`` are in the form that the extension
    takes. ``is_opened`` says whether the modules were decrypted.
    """

    column: int
    part: NDArray[np.intp] | slice
    data: bytes | memoryview
    base: int
    bounds: NDArray[np.int64]
    is_opened: bool


def filter_runs(file: InputFile, columns: Sequence[FilterPlaces]) -> Iterator[FilterRun | None]:
    """Yield the filters of some columns in runs of filters that lie close together in the file.

    Yield None if filters overlap, or are damaged.
    """
    extents, order = [it.places.cumsum(axis=1) for it in columns], None
    reads = None if len(columns) > 1 else _joined(file, extents[0])
    if reads is None:
        every = np.concatenate(extents)
        order = np.argsort(every[:, 0], kind="stable")
        reads = _joined(file, every[order])
    if reads is None:
        yield None
        return
    for start, end, first, until in reads:
        data: bytes | memoryview = read_pooled(file, start, end - start)
        parts = [(0, slice(first, until))] if order is None else _parts(extents, order[first:until])
        for number, part in parts:
            column, bounds = columns[number], extents[number][part]
            if column.cipher is None:
                yield FilterRun(number, part, data, start, bounds, False)
                continue
            ordinals = column.ordinals[part].tolist()
            opened = open_run(column.cipher, data, start, bounds, _MODULES, ordinals)
            if opened is None:
                yield None
                return
            yield FilterRun(number, part, b"".join(opened), 0, bounds_of(opened), True)


def _joined(file: InputFile, extents: NDArray[np.int64]) -> list[tuple[int, int, int, int]] | None:
    return joined_extents(extents.tolist(), file.size, GAP, _LARGEST_TOGETHER)


def _parts(
    columns: Sequence[NDArray[np.int64]], filters: NDArray[np.intp]
) -> list[tuple[int, NDArray[np.intp]]]:
    """Return the ordinal of each column that has some of ``filters``, with their indices.

    ``filters`` are counted over all columns. The returned indices are counted in their column.
    """
    ends = np.cumsum([len(column) for column in columns])
    of = np.searchsorted(ends, filters, side="right")
    firsts = ends - [len(column) for column in columns]
    return [(n, filters[of == n] - firsts[n]) for n in np.unique(of).tolist()]


def ask_filters(
    data: bytes | memoryview | NDArray[np.uint8],
    bounds: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    runs: NDArray[np.int64],
    *,
    base: int = 0,
    is_opened: bool = False,
) -> NDArray[np.uint8]:
    """Return one of the ``ANSWER`` numbers for each filter: whether it may have one of its hashes.

    ``runs`` has the start and end of the hashes that each filter is asked for. ``bounds`` and
    ``base`` say where each filter is in ``data``, as :func:`numpy_loops.ask` reads them.
    """
    answers = np.empty(len(runs), np.uint8)
    ask = (extension.native or numpy_loops).ask
    ask(data, base, bounds, is_opened, _rest_of_header(), hashes, runs, answers)
    return answers


def store_filters(
    file: InputFile, column: FilterPlaces, into: NDArray[np.uint8]
) -> NDArray[np.int64] | None:
    """Store filters of a column in clear, each a header and a bitset.

    ``into`` has room for their stored bytes.  Return start and end of each, or None if filters
    overlap, or are damaged or unusual.
    """
    offsets, lengths = column.places.T
    if column.cipher is None and (offsets[1:] == offsets[:-1] + lengths[:-1]).all():
        file.read_into(int(offsets[0]), into[: lengths.sum()].data)
        ends = np.cumsum(lengths)
        return np.column_stack([ends - lengths, ends])
    bounds, at = np.empty((len(offsets), 2), np.int64), 0
    for run in filter_runs(file, [column]):
        if run is None:
            return None
        stored = list[tuple[int, int]]()
        for content in _in_clear(run):
            if content is None:
                return None
            into[at : at + len(content)] = np.frombuffer(content, np.uint8)
            stored.append((at, at + len(content)))
            at += len(content)
        bounds[run.part] = stored
    return bounds


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


@functools.cache
def _rest_of_header() -> bytes:
    """Return a header without its first field, ``numBytes``. It is the same for all filters."""
    empty = SplitBlockBloomFilter(1)
    header = encode_bloom_filter(empty, None)[: -empty.byte_count]
    return header[2:]
