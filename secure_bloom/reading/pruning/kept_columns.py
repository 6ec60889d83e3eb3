"""Keep bounds and filters of whole columns in memory: one call checks all chunks of a column.

    kept = KeptColumns(files)
    column = kept.column(columns, ordinal)          loads the bounds of the chunks from footers
    segment = kept.with_filters(column, key, left)  loads the filters of chunks that bounds leave
    segment.ask(runs, hashes)                       one call for all filters, whatever the files are

A segment has the chunks of many files one after the other:

    plain | fields        what the footers say of the chunks: see :mod:`.column_chunks`
    filters | bounds      header and bitset of each filter in clear; where each starts and ends

If memory is full, the least recently used column is dropped. A file for which there is no memory,
or which has anything unusual, is read as if nothing were kept. The code that reads it reports
what is wrong with it.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.split_block import BYTES_PER_BLOCK
from secure_bloom.errors import (
    FormatError,
    IntegrityError,
    KeyUnavailableError,
    UnsupportedFeatureError,
)
from secure_bloom.kernels import extension
from secure_bloom.kernels.loops import check_hashes
from secure_bloom.parquet import chunk_fields as layout
from secure_bloom.parquet.file_ciphers import bounds_of
from secure_bloom.parquet.footer.columns import FileColumns
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.reading.pruning.column_chunks import (
    ColumnChunks,
    Numbers,
    codes_of,
    decode_column_chunks,
    places_of,
    read_column_chunks,
)
from secure_bloom.reading.pruning.filter_reads import (
    ANSWER_NONE,
    ANSWER_SOME,
    Hashes,
    ask_filters,
    store_filters,
)
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.ordered_pool import in_order

Mask = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

#: The slots of a chunk with places of the texts that the extension looks at.
_TEXTS = [*range(layout.MIN_VALUE, layout.FILE_PATH), layout.DEFINITION_LEVEL_HISTOGRAM]
_TEXTS.append(layout.DEFINITION_LEVEL_HISTOGRAM + 1)
#: In place of the bounds of a filter: there is none, it is not loaded, it is not a usual one.
_NO_FILTER, _NOT_LOADED, _UNUSUAL = -1, -2, -3
_NOTHING = np.empty(0, np.uint8)
#: Answers that are computed at once: a byte each, and their runs and bounds 32 times as much.
_ANSWERS_AT_ONCE = 1 << 18
#: So few hashes are looked up at once without asking the filter for each.
_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segment(ColumnChunks):
    """The chunks of one column in some files, and those of their filters that are in memory.

    The first ``used`` bytes of ``content`` are filters. ``bounds`` are the start and end of each
    filter in ``content``, or negative for a filter that is not in memory.
    """

    content: Bytes = field(default_factory=lambda: _NOTHING, repr=False)
    used: int = 0
    bounds: Numbers = field(repr=False)

    @property
    def memory(self) -> int:
        """How many bytes the segment takes."""
        arrays = (self.codes, self.ordinals, self.rows, self.fields, self.content, self.bounds)
        return len(self.plain) + sum(array.nbytes for array in arrays)

    @property
    def sizes(self) -> Numbers:
        """The size of each filter in its file, an upper bound of its size in memory."""
        sizes: Numbers = np.maximum(self.fields[:, layout.BLOOM_FILTER_LENGTH], 0)
        return sizes

    @property
    def is_missing(self) -> Mask:
        """A mask of the chunks whose filter is not loaded yet."""
        return np.equal(self.bounds[:, 0], _NOT_LOADED)

    @property
    def is_known(self) -> Mask:
        """A mask of the chunks whose filter is in memory, or that have none."""
        return np.greater_equal(self.bounds[:, 0], _NO_FILTER)

    def ask(self, runs: Numbers, hashes: NDArray[np.uint64]) -> Bytes:
        """Return the answer of each chunk's filter for its run of the hashes.

        Only filters in memory answer. A run with a negative start is not asked.
        """
        return ask_filters(self.content, self.bounds, hashes, np.maximum(runs, 0))

    def passing(self, chunk: int, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the hashes that a filter in memory lets pass, or all if they are few."""
        if len(hashes) <= _FEW:
            return hashes
        start, end = self.bounds[chunk].tolist()
        # A header is smaller than a block.
        bitset = self.content[end - (end - start) // BYTES_PER_BLOCK * BYTES_PER_BLOCK : end]
        found = np.empty(len(hashes), np.bool_)
        check_hashes(bitset.view(np.uint32).reshape(-1, 8), hashes, found)
        return hashes[found]

    def answers(self, hashes: NDArray[np.uint64]) -> Mask:
        """Return whether each filter, a row, may have each hash, a column."""
        chunks, found = len(self.codes), []
        for first in range(0, len(hashes), step := max(1, _ANSWERS_AT_ONCE // max(chunks, 1))):
            part = hashes[first : first + step]
            runs = np.tile(np.arange(len(part))[:, None] + np.array([0, 1]), (chunks, 1))
            bounds = np.repeat(self.bounds, len(part), axis=0)
            every = ask_filters(self.content, bounds, part, runs)
            found.append(every.reshape(chunks, len(part)) != ANSWER_NONE)
        return np.concatenate(found, axis=1) if found else np.empty((chunks, 0), np.bool_)

    def moved(self, ordinals: Numbers) -> Segment:
        """Return the segment after files got new ordinals. A removed file has a negative one."""
        files, row_groups = places_of(self.codes)
        files = ordinals[files]
        left = files >= 0
        # Else the texts of each file that was ever replaced would stay.
        plain, fields = (
            (self.plain, self.fields)
            if left.all()
            else _with_own_texts(self.plain, self.fields[left])
        )
        content, bounds = _packed(self.content, self.bounds[left])
        return replace(
            self,
            codes=codes_of(files[left], row_groups[left]),
            ordinals=self.ordinals[left],
            ciphers={
                ordinals[file]: it for file, it in self.ciphers.items() if ordinals[file] >= 0
            },
            rows=self.rows[left],
            plain=plain,
            fields=fields,
            content=self.content if left.all() else content,
            used=self.used if left.all() else len(content),
            bounds=self.bounds if left.all() else bounds,
        )


def _packed(filters: Bytes, bounds: Numbers) -> tuple[Bytes, Numbers]:
    """Return the filters that have bounds, one after the other, and their bounds there."""
    here, moved = np.flatnonzero(bounds[:, 0] >= 0), bounds.copy()
    ends = np.cumsum(bounds[here, 1] - bounds[here, 0])
    moved[here] = np.column_stack([np.concatenate([[0], ends[:-1]]), ends]) if len(here) else 0
    parts = [filters[start:end] for start, end in bounds[here].tolist()]
    return np.concatenate(parts) if parts else _NOTHING, moved


def joined(parts: Sequence[Segment]) -> Segment:
    """Return one segment of several; only the first may have filters in memory."""
    plain = [part.plain for part in parts]
    by = np.repeat(bounds_of(plain)[:-1], [len(part.fields) for part in parts])
    return replace(
        parts[0],
        codes=np.concatenate([part.codes for part in parts]),
        ordinals=np.concatenate([part.ordinals for part in parts]),
        ciphers={file: it for part in parts for file, it in part.ciphers.items()},
        rows=np.concatenate([part.rows for part in parts]),
        plain=b"".join(plain),
        fields=_shifted(np.concatenate([part.fields for part in parts]), by),
        bounds=np.concatenate([part.bounds for part in parts]),
    )


def _shifted(fields: Numbers, by: Numbers) -> Numbers:
    """Return the fields of chunks, with the offsets of texts increased by ``by``.

    A negative offset means that there is no text.
    """
    moved, texts = fields.copy(), fields[:, _TEXTS]
    moved[:, _TEXTS] = np.where(texts < 0, texts, texts + by[:, None])
    return moved


class KeptColumn:
    """One column of the files of one schema: its segments, and the files that are in them.

    There is at most one segment with bounds in order, and one with bounds out of order.
    ``refused`` are files that are read as if nothing were kept.
    """

    def __init__(self) -> None:
        self.segments: dict[bool, Segment] = {}
        self.known: frozenset[int] = frozenset()
        self.refused: frozenset[int] = frozenset()

    @property
    def memory(self) -> int:
        """How many bytes the column takes."""
        return sum(segment.memory for segment in self.segments.values())


class KeptColumns:
    """The columns that were asked for, as far as there is memory; safe for threads."""

    def __init__(self, files: TableFiles) -> None:
        self.files = files
        self._memory = files.memory
        self._columns: dict[tuple[int, int], KeptColumn] = {}
        self._lock = threading.Lock()
        #: What was taken for the column that is being loaded.
        self._taken = 0

    def moved(self, files: TableFiles) -> KeptColumns:
        """Return these columns for ``files``, a newer state of the table."""
        new, numbers = KeptColumns(files), np.array(self.files.ordinals_in(files), np.int64)
        with self._lock:
            # Nothing is kept here any more: the account is closed.
            columns, self._columns = self._columns, {}
        for key, column in columns.items():
            moved = KeptColumn()
            moved.segments = {key: it.moved(numbers) for key, it in column.segments.items()}
            moved.known = frozenset(n for n in numbers[list(column.known)].tolist() if n >= 0)
            if new._memory.take(moved.memory):
                new._columns[key] = moved
        return new

    @property
    def memory(self) -> int:
        """How many bytes are kept."""
        return sum(column.memory for column in self._columns.values())

    @property
    def schemas(self) -> Collection[FileColumns]:
        """The columns of all files, each schema once."""
        return self.files.schemas

    def column(self, columns: FileColumns, ordinal: int) -> KeptColumn:
        """Return one column of the files of a schema, once its bounds are in memory."""
        key = (id(columns), ordinal)
        with self._lock:
            # Taken out and put back: the column that was used last is the last of all.
            kept = self._columns.pop(key, None) or KeptColumn()
            self._columns[key] = kept
            missing = self.files.schemas[columns] - kept.known - kept.refused
            if missing:
                with self._counted(kept):
                    self._load(kept, sorted(missing), ordinal)
            return kept

    def with_filters(self, kept: KeptColumn, key: bool, wanted: Mask) -> Segment:
        """Load the missing filters of the ``wanted`` chunks of a column, and return their segment.

        ``key`` chooses one of the column's segments. Filters that do not fit into memory, or have
        an unusual form, are not loaded.
        """
        segment = kept.segments[key]
        if not (wanted & segment.is_missing).any():
            return segment
        with self._lock:
            segment = kept.segments[key]
            missing = np.flatnonzero(wanted & segment.is_missing)
            # A column that was dropped meanwhile is no longer counted.
            if len(missing) and kept in self._columns.values():
                with self._counted(kept):
                    segment = kept.segments[key] = self._filled(kept, segment, missing)
            return segment

    def refute(
        self, segment: Segment, column: int, runs: Numbers, hashes: NDArray[np.uint64], found: Bytes
    ) -> None:
        """Change the answers ``found`` of filters that are false, as far as that is known.

        It is known of a chunk that a lookup has searched in vain.
        """
        kept = self.files.chunks
        if kept is None or not kept.hashes.used:
            return
        for number in np.flatnonzero(found == ANSWER_SOME).tolist():
            file, row_group = places_of(segment.codes[number])
            digests = kept.hashes.of((self.files.paths[file], int(row_group), column))
            if digests is not None:
                asked = segment.passing(number, hashes[slice(*runs[number])]).astype(np.uint32)
                places = np.minimum(np.searchsorted(digests, asked), len(digests) - 1)
                if not len(digests) or not (digests[places] == asked).any():
                    found[number] = ANSWER_NONE

    def answers(
        self, columns: FileColumns, ordinal: int, encodings: Sequence[bytes]
    ) -> Iterator[tuple[int, int, list[bool] | None]]:
        """Yield file, row group, and whether its filter may have each value; None without a filter.

        Files are left out that have row groups whose filter is not in memory.
        """
        kept, hashes = self.column(columns, ordinal), Hashes.of(encodings).array
        for key, whole in tuple(kept.segments.items()):
            segment = self.with_filters(kept, key, np.ones(len(whole.codes), np.bool_))
            files, row_groups = places_of(segment.codes)
            partly = set(files[~segment.is_known].tolist())
            every = zip(
                files.tolist(),
                row_groups.tolist(),
                (segment.bounds[:, 0] >= 0).tolist(),
                segment.answers(hashes).tolist(),
                strict=True,
            )
            for file, row_group, has_filter, found in every:
                if file not in partly:
                    yield file, row_group, found if has_filter else None

    def _load(self, kept: KeptColumn, missing: Sequence[int], ordinal: int) -> None:
        """Load the missing files, except unusual files and files that do not fit into memory."""
        parts: dict[bool, list[Segment]] = {key: [it] for key, it in kept.segments.items()}
        known, refused = list[int](), list[int]()

        def loaded(file: int) -> Segment | None:
            return self._loaded(file, ordinal)

        for file, part in zip(missing, in_order(loaded, missing, self.files.workers), strict=True):
            if part is None or not self._reserve(kept, part.memory):
                refused.append(file)
            else:
                known.append(file)
                parts.setdefault(part.has_order, []).append(part)
        kept.segments = {key: joined(some) for key, some in parts.items()}
        kept.known |= frozenset(known)
        kept.refused |= frozenset(refused)

    def _loaded(self, file: int, ordinal: int) -> Segment | None:
        try:
            footer = self.files.kept(file)
            if footer is None:
                with self.files.opened(file) as (_, footer):
                    return _segment(file, footer, ordinal)
            return _segment(file, footer, ordinal)
        except (FormatError, IntegrityError, KeyUnavailableError, UnsupportedFeatureError):
            # What is wrong is an error only for a read that comes to this column.
            return None

    def _filled(self, kept: KeptColumn, segment: Segment, chunks: NDArray[np.intp]) -> Segment:
        """Return the segment with the filters of ``chunks``, as far as there is room."""
        files, _ = places_of(segment.codes[chunks])
        groups = np.split(chunks, np.flatnonzero(np.diff(files)) + 1)
        sizes, filters = segment.sizes, None
        while groups and filters is None:
            filters = self._lengthened(kept, segment, int(sizes[np.concatenate(groups)].sum()))
            groups = groups if filters is not None else groups[:-1]
        if filters is None:
            return segment
        bounds, sums = segment.bounds.copy(), [int(sizes[group].sum()) for group in groups]
        ends = segment.used + np.cumsum(sums)
        rooms = np.split(filters[segment.used : ends[-1]], ends[:-1] - segment.used)
        every = in_order(
            lambda it: self._filters(segment, *it),
            zip(groups, rooms, strict=True),
            self.files.workers,
        )
        for group, start, found in zip(groups, (ends - sums).tolist(), every, strict=True):
            bounds[group] = _UNUSUAL if found is None else found + start
        used, bounds = int(ends[-1]), _usual(filters, bounds, chunks)
        return replace(segment, content=filters, used=used, bounds=bounds)

    def _filters(self, segment: Segment, chunks: NDArray[np.intp], into: Bytes) -> Numbers | None:
        """Store the filters of chunks of one file, and return where each starts and ends.

        Return None if one is damaged or unusual.
        """
        file = int(places_of(segment.codes[chunks])[0][0])
        try:
            with self.files.file(file) as opened:
                return store_filters(opened, segment.filter_places(file, chunks), into)
        except (FormatError, IntegrityError, UnsupportedFeatureError):
            return None

    def _lengthened(self, kept: KeptColumn, segment: Segment, size: int) -> Bytes | None:
        """Return a segment's filters with ``size`` free bytes after them, or None without memory.

        If there is memory, more bytes are left free, because copying all filters for each new one
        would take long.
        """
        now, needed = len(segment.content), segment.used + size
        if needed <= now:
            return segment.content
        most = segment.used + int(segment.sizes[segment.is_missing].sum())
        for new in (max(needed, min(2 * now, most)), needed):
            if self._reserve(kept, new - now):
                longer = np.empty(new, np.uint8)
                longer[: segment.used] = segment.content[: segment.used]
                return longer
        return None

    @contextmanager
    def _counted(self, kept: KeptColumn) -> Iterator[None]:
        """Run the block, then release the memory that was reserved for a column and not used.

        Memory is left over after an error, and if a column takes less than its parts.
        """
        before, self._taken = kept.memory, 0
        try:
            yield
        finally:
            self._memory.give_back(self._taken - (kept.memory - before))

    def _reserve(self, kept: KeptColumn, size: int) -> bool:
        """Reserve ``size`` bytes, evicting the least recently used columns.

        Return False if that is not enough.
        """
        while not self._memory.take(size):
            oldest = next(iter(self._columns.items()), None)
            if oldest is None or oldest[1] is kept or size > self._memory.most:
                return False
            del self._columns[oldest[0]]
            self._memory.give_back(oldest[1].memory)
        self._taken += size
        return True


def _usual(filters: Bytes, bounds: Numbers, chunks: NDArray[np.intp]) -> Numbers:
    """Return the bounds, with a mark for each filter of ``chunks`` that has an unusual form."""
    # No filter has one of no values, unless its form is not known.
    runs = np.zeros((len(chunks), 2), np.int64)
    answers = ask_filters(filters, bounds[chunks], np.empty(0, np.uint64), runs)
    bounds[chunks[(answers != ANSWER_NONE) & (bounds[chunks, 0] >= 0)]] = _UNUSUAL
    return bounds


def _chunks_of(file: int, footer: Footer, ordinal: int) -> ColumnChunks | None:
    """Return a column's chunks in the row groups that have rows.

    Return None if there are none, if a filter's length cannot be true, or if a chunk has fields
    that the compact form does not hold: then the steps of a plan look at each chunk.
    """
    row_groups = [index for index, count in enumerate(footer.rows) if count > 0]
    read = decode_column_chunks if extension.native is None else read_column_chunks
    chunks = read(footer, ordinal, row_groups, file) if row_groups else None
    if chunks is None:
        return None
    offsets, lengths = chunks.filters.T
    # A filter is a part of its file; how long it is comes from the footer.
    lengths = lengths[offsets >= 0]
    if ((lengths <= 0) | (lengths > footer.size)).any() or lengths.sum() > footer.size:
        return None
    if extension.native is None:
        return chunks
    runs, no_values = np.empty((len(row_groups), 2), np.int64), np.zeros(1, np.int64)
    path = footer.leaves[ordinal].encoded_path
    extension.native.leave(
        chunks.plain, chunks.fields, chunks.rows, path, b"", no_values, 0, 0, runs
    )
    # Without values every chunk is ruled out, unless it is an unusual one.
    return chunks if (runs == 0).all() else None


def _texts_of(fields: Numbers) -> Numbers:
    """Return for each chunk the start and end of the smallest range with all its texts."""
    texts = fields[:, _TEXTS]
    starts = np.where(texts < 0, np.iinfo(np.int64).max, texts).min(axis=1)
    return np.column_stack([starts, texts.max(axis=1)])


def _with_own_texts(plain: bytes, fields: Numbers) -> tuple[bytes, Numbers]:
    """Return the joined texts of only these chunks, and the fields with offsets in them."""
    texts = _texts_of(fields)
    own = [plain[start:end] for start, end in texts.tolist()]
    return b"".join(own), _shifted(fields, bounds_of(own)[:-1] - texts[:, 0])


def _segment(file: int, footer: Footer, ordinal: int) -> Segment | None:
    """Return the segment of a column in one file without filters, or None for unusual chunks."""
    chunks = _chunks_of(file, footer, ordinal)
    if chunks is None:
        return None
    fields = chunks.fields.copy()
    # A dictionary may be smaller than a filter, but the filter stays in memory.
    fields[:, layout.DICTIONARY_PAGE_OFFSET] = 0
    plain, fields = _with_own_texts(chunks.plain, fields)
    states = np.where(chunks.filters[:, 0] < 0, _NO_FILTER, _NOT_LOADED)
    return Segment(
        codes=chunks.codes,
        ordinals=chunks.ordinals,
        ciphers=chunks.ciphers,
        rows=chunks.rows,
        has_order=chunks.has_order,
        plain=plain,
        fields=fields,
        bounds=np.column_stack([states, states]),
    )
