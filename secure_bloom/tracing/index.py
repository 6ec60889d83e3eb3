"""Index the words of all columns. A word of a text is looked up in a filter, then by its hash.

By chance, the filter passes one word in 10,000 that no value has. Words that pass are looked up
among the 64-bit hashes of the values, after which hardly any word matches by chance. Reported words
are then compared with the values themselves (:mod:`.search`).

A column may have more words than fit into memory. Then all its words are put into a filter only.
The files are searched for words that pass the filter, and the values are read again. The index then
gets the passed words that are words of values (:meth:`WordIndex.narrowed`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import BYTES_PER_BLOCK, SplitBlockBloomFilter
from secure_bloom.kernels.distinct import DistinctNumbers, distinct
from secure_bloom.kernels.numpy_loops import Blocks
from secure_bloom.kernels.words import Found, Room, find_words, new_shapes
from secure_bloom.tracing.column_words import (
    IS_VALUE,
    MASK,
    REST,
    ColumnWords,
    Entries,
    TakenWords,
    sampled_words,
    taken_words,
    words_among,
)
from secure_bloom.tracing.subjects import SearchedColumn

_FPP: Final = 1e-4
_MOST_BYTES: Final = 1 << 31
#: Bytes that a word takes: its entry, its bits, and room to sort it.
_BYTES_A_WORD: Final = 32
#: Words that are inserted at a time: their hashes take memory of their own.
_INSERTED: Final = 1 << 20


class WordIndex:
    """The words of all columns. Threads may share it.

    ``entries`` are in ascending order. An entry is the hash of a word, with its kind and whether it
    is a value in the lowest byte. ``owners`` has the column of each entry. ``most`` is the number
    of words of a column that fit into memory.
    """

    def __init__(
        self, subjects: Sequence[SearchedColumn], taken: Sequence[TakenWords], most: int = 0
    ) -> None:
        self.subjects = tuple(subjects)
        #: The files and columns whose values could not be read, with the reasons.
        self.unread: dict[tuple[str, str | None], str] = {}
        self.most = most
        self._wide: _WideColumns | None = None
        self.columns: Sequence[ColumnWords] = tuple(it.column for it in taken)
        self.longest = max((it.longest for it in taken), default=0)
        self.shapes = new_shapes()
        for it in taken:
            self.shapes |= it.shapes
        sizes = [len(it.entries) for it in taken]
        entries = np.concatenate([*(it.entries for it in taken), np.empty(0, np.uint64)])
        for it in taken:
            # Freed before they are sorted: there may be as many as fit into memory.
            it.entries = entries[:0]
        order = np.argsort(entries, kind="stable")
        self.entries = entries[order]
        self.owners = np.repeat(np.arange(len(taken), dtype=np.uint32), sizes)[order]
        filled = SplitBlockBloomFilter(block_count_for(max(sum(sizes), 1), _FPP, _MOST_BYTES))
        for start in range(0, len(self.entries), _INSERTED):
            filled.insert_hashes(self.entries[start : start + _INSERTED] & MASK)
        self.blocks = filled._blocks()

    @classmethod
    def build(cls, subjects: Sequence[SearchedColumn], memory: int) -> WordIndex:
        """Read the values of all columns. Errors of reading are raised."""
        most = max(memory // _BYTES_A_WORD, 1_000) // max(len(subjects), 1)
        return cls(subjects, [taken_words(subject, most) for subject in subjects], most)

    def narrowed(self, search: Callable[[WordIndex], object]) -> WordIndex:
        """Return an index of only the words that the files have, if columns do not fit into memory.

        ``search`` is called to search the files for the words of an index. Afterwards this index is
        empty, but can be narrowed again for other files.
        """
        if all(it.is_whole for it in self.columns):
            return self
        if self._wide is None:
            self.entries, self.owners = self.entries[:0], self.owners[:0]
            self._wide = _wide_columns(self)
        room = max(self.most // _SHARE_OF_PASSED, 1_000)
        passed = _Passed(self._wide, room + 1)
        search(passed)
        hashes = passed.hashes()
        taken = []
        for subject, sample in zip(self.subjects, self._wide.samples, strict=True):
            if sample is None:
                taken.append(taken_words(subject, self.most))
            else:
                among = words_among(subject, sample, hashes[:room])
                among.column = replace(among.column, is_whole=len(hashes) <= room)
                taken.append(among)
        narrowed = WordIndex(self.subjects, taken, self.most)
        narrowed.unread = self.unread
        return narrowed

    def found_in(self, text: bytes, room: Room) -> Iterator[tuple[NDArray[np.uint8], Found]]:
        """Yield the pieces of a text that fit into ``room``, with their words that pass."""
        data, start = np.frombuffer(text, np.uint8), 0
        while start < len(data):
            step = data[start : start + room.size]
            is_end = start + len(step) == len(data)
            found = find_words(step, room, self.longest, self.shapes, self.blocks, is_last=is_end)
            yield step, found
            # A gap of a step and more has no atom to go on with.
            start += found.done or len(step)

    def matches(self, hashes: Entries) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield for each column the positions of its words in ``hashes``, and their entry numbers.

        Entries of all columns are numbered together.
        """
        # One search for all columns, which may be thousands.
        first = np.searchsorted(self.entries, hashes)
        counts = np.searchsorted(self.entries, hashes | ~MASK, side="right") - first
        at = np.repeat(np.arange(len(hashes)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(first, counts) + np.arange(len(at)) - before
        for owner, own in self._by_owner(numbers):
            yield owner, at[own], numbers[own]

    def kinds_of(self, numbers: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield each column that has some of the numbered entries, with the kinds of these."""
        for owner, own in self._by_owner(numbers):
            yield owner, self.entries[numbers[own]].astype(np.uint8) & np.uint8(REST)

    def are_values(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return a mask of the entries that are whole values: not parts, and no other notation."""
        found: NDArray[np.bool_] = (self.entries[numbers] & np.uint64(IS_VALUE)) != 0
        return found

    def _by_owner(self, numbers: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield each column that has some of the entries, with their positions in ``numbers``."""
        if not len(numbers):
            return iter(())
        owners = self.owners[numbers]
        places = np.argsort(owners, kind="stable")
        known, starts = np.unique(owners[places], return_index=True)
        return zip(known.tolist(), np.split(places, starts[1:]), strict=True)


#: Of the memory of a column that does not fit, its filter takes three quarters; the words of files
#: that pass it may be one for this many that fit.
_SHARE_OF_PASSED: Final = 8
_FILTERED: Final = 0.75


class _WideColumns(NamedTuple):
    """The columns whose words do not all fit into memory: a sample of each, and a joint filter."""

    samples: list[TakenWords | None]
    blocks: Blocks


def _wide_columns(index: WordIndex) -> _WideColumns:
    """Read the columns that do not fit into memory into a filter."""
    count = sum(not it.is_whole for it in index.columns)
    size = int(index.most * _BYTES_A_WORD * count * _FILTERED)
    # Not a power of two: each byte counts, and it is not written to a file.
    filled = SplitBlockBloomFilter(max(min(size, _MOST_BYTES) // BYTES_PER_BLOCK, 1))
    samples = [
        None if column.is_whole else sampled_words(subject, index.most, filled.insert_hashes)
        for subject, column in zip(index.subjects, index.columns, strict=True)
    ]
    return _WideColumns(samples, filled._blocks())


class _Passed(WordIndex):
    """Collects the words of texts that pass a filter. It is used in the place of an index."""

    def __init__(self, wide: _WideColumns, most: int) -> None:
        super().__init__((), ())
        for it in filter(None, wide.samples):
            self.longest = max(self.longest, it.longest)
            self.shapes |= it.shapes
        self.blocks = wide.blocks
        self._hashes = DistinctNumbers(np.uint64, most)
        self._lock = threading.Lock()

    def found_in(self, text: bytes, room: Room) -> Iterator[tuple[NDArray[np.uint8], Found]]:
        """Collect the words of a text that pass the filter, and yield nothing."""
        for _, found in super().found_in(text, room):
            hashes = np.ascontiguousarray(found.hits[:, 0]).view(np.uint64)
            with self._lock:
                self._hashes.add(distinct(hashes))
        return iter(())

    def hashes(self) -> Entries:
        """Return the hashes of the words, in ascending order."""
        return self._hashes.found()
