"""Bounds and filters of whole columns in memory: one question goes to all their chunks at once.

    kept = KeptColumns(files, memory)
    column = kept.column(columns, ordinal)     loads what is missing, as far as there is memory
    segment.ask(runs, hashes)                  one call of the C extension, whatever the files are

A column is kept in segments, each with the chunks of many files one after the other:

    plain | fields        what the footers say of the chunks: see :mod:`.batch.chunk_fields`
    filters | bounds      header and bitset of each filter in clear; where each starts and ends

The column that was used last stays longest.  A file without room is read as if nothing were kept,
and so is one with anything unusual: the code that reads it knows what is wrong with it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    UnsupportedFeatureError,
)
from secure_bloom.kernels import extension
from secure_bloom.parquet import chunk_fields as layout
from secure_bloom.parquet.value_order import has_ordered_bounds
from secure_bloom.reading.pruning.batch.chunk_fields import (
    ChunkFields,
    Numbers,
    bounds_of,
    read_chunk_fields,
)
from secure_bloom.reading.pruning.filter_reads import (
    ANSWER_NONE,
    ANSWER_SOME,
    append_filters,
    ask_filters,
)
from secure_bloom.reading.table.file_columns import FileColumns
from secure_bloom.reading.table.footer import FileFooter
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import CountedFile
from secure_bloom.storage.memory_budget import MemoryShare

Mask = NDArray[np.bool_]

#: The slots of a chunk with places of the texts that the extension looks at.
_TEXTS = [*range(layout.MIN_VALUE, layout.FILE_PATH), layout.DEFINITION_LEVEL_HISTOGRAM]
_TEXTS.append(layout.DEFINITION_LEVEL_HISTOGRAM + 1)
_NO_PLACE = -1
#: Bytes that numbers of one chunk take.
_CHUNK_BYTES = 8 * (layout.SLOTS + 5)


class Asked(NamedTuple):
    """The chunks of a segment that may match, and those of them whose filter was asked."""

    may_match: Mask
    by_filter: Mask


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment:
    """The chunks of one column in some files; ``places`` has the file and row group of each.

    ``has_order`` says whether bounds are in the order of the type.  ``bounds`` of a filter are
    below zero for a chunk without one.
    """

    places: Numbers
    rows: Numbers
    has_order: bool
    plain: bytes = field(repr=False)
    fields: Numbers = field(repr=False)
    filters: bytearray = field(repr=False)
    bounds: Numbers = field(repr=False)

    @property
    def memory(self) -> int:
        """How many bytes it takes."""
        arrays = (self.places, self.rows, self.fields, self.bounds)
        return len(self.plain) + len(self.filters) + sum(array.nbytes for array in arrays)

    def ask(self, runs: Numbers, hashes: NDArray[np.uint64]) -> Asked:
        """Return which chunks may have a value of their run of the hashes.

        A run is what bounds leave of the values.  It starts below zero where they decide nothing.
        """
        undecided = runs[:, 0] < 0
        answers = ask_filters(self.filters, self.bounds, hashes, np.maximum(runs, 0))
        is_out = (answers == ANSWER_NONE) | (runs[:, 0] == runs[:, 1])
        may_match = undecided | ~is_out
        return Asked(may_match, may_match & ~undecided & (answers == ANSWER_SOME))

    def moved(self, ordinals: Numbers) -> Segment:
        """Return the chunks of files that have other ordinals now; below zero: that are gone."""
        files = ordinals[self.places[:, 0]]
        left = files >= 0
        return replace(
            self,
            places=np.column_stack([files[left], self.places[left, 1]]),
            rows=self.rows[left],
            fields=self.fields[left],
            bounds=self.bounds[left],
        )


def joined(parts: Sequence[Segment]) -> Segment:
    """Return one segment of several; the filters of the first are lengthened for it."""
    filters, size = parts[0].filters, 0
    fields, bounds = [], []
    for part in parts:
        fields.append(_shifted(part.fields, _TEXTS, size))
        size += len(part.plain)
        if part is parts[0]:
            bounds.append(part.bounds)
        else:
            bounds.append(_shifted(part.bounds, [0, 1], len(filters)))
            filters += part.filters
    return Segment(
        places=np.concatenate([part.places for part in parts]),
        rows=np.concatenate([part.rows for part in parts]),
        has_order=parts[0].has_order,
        plain=b"".join(part.plain for part in parts),
        fields=np.concatenate(fields),
        filters=filters,
        bounds=np.concatenate(bounds),
    )


def _shifted(fields: Numbers, slots: Sequence[int], by: Numbers | int) -> Numbers:
    """Return the fields with the places in some slots moved; below zero there is none."""
    moved = fields.copy()
    texts = fields[:, slots]
    moved[:, slots] = np.where(texts < 0, texts, texts + by)
    return moved


class KeptColumn:
    """One column of the files of one schema: its segments, and the files that are in them.

    ``refused`` are files that are read as if nothing were kept.
    """

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()
        self.known: frozenset[int] = frozenset()
        self.refused: frozenset[int] = frozenset()

    @property
    def memory(self) -> int:
        """How many bytes it takes."""
        return sum(segment.memory for segment in self.segments)


class KeptColumns:
    """The columns that were asked for, as far as there is memory; safe for threads."""

    def __init__(self, files: TableFiles, memory: MemoryShare) -> None:
        self._files = files
        self._memory = memory
        self._columns: dict[tuple[int, int], KeptColumn] = {}
        self._lock = threading.Lock()

    def moved(self, files: TableFiles, ordinals: Sequence[int]) -> KeptColumns:
        """Return what is kept, for ``files``, a newer state of the table.

        ``ordinals`` maps each old ordinal of a file to the new one, or to -1 if the file changed.
        """
        new, numbers = KeptColumns(files, self._memory), np.array(ordinals, np.int64)
        with self._lock:
            for key, column in self._columns.items():
                moved = new._columns[key] = KeptColumn()
                moved.segments = tuple(segment.moved(numbers) for segment in column.segments)
                moved.known = frozenset(n for n in numbers[list(column.known)].tolist() if n >= 0)
                self._memory.give_back(column.memory - moved.memory)
        return new

    @property
    def memory(self) -> int:
        """How many bytes are kept."""
        return sum(column.memory for column in self._columns.values())

    @property
    def schemas(self) -> Collection[FileColumns]:
        """The columns of all files, each schema once."""
        return self._files.schemas

    def column(self, columns: FileColumns, ordinal: int) -> KeptColumn:
        """Return one column of the files of a schema, once its filters are in memory."""
        key = (id(columns), ordinal)
        with self._lock:
            # Taken out and put back: the column that was used last is the last of all.
            kept = self._columns.pop(key, None) or KeptColumn()
            self._columns[key] = kept
            missing = self._files.schemas[columns] - kept.known - kept.refused
            if missing:
                self._load(kept, sorted(missing), ordinal)
            return kept

    def _load(self, kept: KeptColumn, missing: Sequence[int], ordinal: int) -> None:
        """Load the missing files, but those without room and those with anything unusual."""
        parts: dict[bool, list[Segment]] = {}
        known, refused = list[int](), list[int]()

        def loaded(file: int) -> Segment | None:
            return self._loaded(kept, file, ordinal)

        for file, part in zip(missing, in_order(loaded, missing, self._files.workers), strict=True):
            (refused if part is None else known).append(file)
            if part is not None:
                parts.setdefault(part.has_order, []).append(part)
        kept.segments += tuple(map(joined, parts.values()))
        kept.known |= frozenset(known)
        kept.refused |= frozenset(refused)

    def _loaded(self, kept: KeptColumn, file: int, ordinal: int) -> Segment | None:
        try:
            with self._files.opened(file) as (opened, footer):
                chunks = _chunks_of(footer, ordinal)
                if chunks is None or not self._has_room(kept, _memory_of(chunks)):
                    return None
                part = _segment(file, opened, footer, ordinal, chunks)
        except (FormatError, IntegrityError, KeyUnavailableError, UnsupportedFeatureError):
            # What is wrong is an error only for a read that comes to this filter.
            return None
        self._memory.give_back(_memory_of(chunks) - (0 if part is None else part.memory))
        return part

    def _has_room(self, kept: KeptColumn, size: int) -> bool:
        """Count ``size`` bytes more; columns that were used longest ago make room for them."""
        while not self._memory.take(size):
            oldest = next(iter(self._columns.items()), None)
            if oldest is None or oldest[1] is kept or size > self._memory.most:
                return False
            del self._columns[oldest[0]]
            self._memory.give_back(oldest[1].memory)
        return True


def _chunks_of(footer: FileFooter, ordinal: int) -> ChunkFields | None:
    """Return the chunks of a column in the row groups that have rows; None for unusual ones."""
    row_groups = [index for index, count in enumerate(footer.scan.rows) if count > 0]
    chunks = read_chunk_fields(footer, ordinal, row_groups) if row_groups else None
    if chunks is None:
        return None
    offsets, lengths = chunks.filters.T
    if (lengths[offsets >= 0] <= 0).any():
        return None
    runs, no_values = np.empty((len(row_groups), 2), np.int64), np.zeros(1, np.int64)
    path = footer.leaves[ordinal].encoded_path
    extension.native.leave(
        chunks.plain, chunks.fields, _rows(footer, chunks), path, b"", no_values, 0, 0, runs
    )
    # Without values every chunk is ruled out, unless it is an unusual one.
    return chunks if (runs == 0).all() else None


def _rows(footer: FileFooter, chunks: ChunkFields) -> Numbers:
    return np.array([footer.scan.rows[index] for index in chunks.row_groups], np.int64)


def _memory_of(chunks: ChunkFields) -> int:
    """Return about how many bytes a segment of these chunks takes."""
    filters = np.maximum(chunks.filters[:, 1], 0).sum()
    texts = np.diff(_texts_of(chunks.fields)).sum()
    return int(filters + texts) + len(chunks.row_groups) * _CHUNK_BYTES


def _texts_of(fields: Numbers) -> Numbers:
    """Return the start and end of the bytes of each chunk that have all its texts."""
    texts = fields[:, _TEXTS]
    starts = np.where(texts < 0, np.iinfo(np.int64).max, texts).min(axis=1)
    return np.column_stack([starts, texts.max(axis=1)])


def _segment(
    file: int, opened: CountedFile, footer: FileFooter, ordinal: int, chunks: ChunkFields
) -> Segment | None:
    """Read the filters of chunks, and return all that is kept of them; None for unusual filters."""
    filters = bytearray()
    with_filter = np.flatnonzero(chunks.filters[:, 0] >= 0).tolist()
    found = append_filters(
        filters,
        opened,
        chunks.filters[with_filter],
        chunks.cipher,
        [chunks.ordinals[index] for index in with_filter],
    )
    if found is None:
        return None
    bounds = np.full((len(chunks.row_groups), 2), _NO_PLACE, np.int64)
    bounds[with_filter] = found
    fields = chunks.fields.copy()
    # A dictionary may be smaller than a filter, but the filter is in memory.
    fields[:, layout.DICTIONARY_PAGE_OFFSET] = 0
    texts = _texts_of(fields)
    plain = [chunks.plain[start:end] for start, end in texts.tolist()]
    moved = bounds_of(plain)[:-1] - texts[:, 0]
    files = np.full(len(chunks.row_groups), file, np.int64)
    return Segment(
        places=np.column_stack([files, np.array(chunks.row_groups, np.int64)]),
        rows=_rows(footer, chunks),
        has_order=has_ordered_bounds(
            footer.metadata.column_orders, ordinal, footer.leaves[ordinal]
        ),
        plain=b"".join(plain),
        fields=_shifted(fields, _TEXTS, moved[:, None]),
        filters=filters,
        bounds=bounds,
    )
