"""One index of the words of all columns: a filter that a text's words are asked, then their hashes.

The filter lets one word in 10,000 pass that no value has.  What passes is looked up among the
64-bit hashes of the values, so that no chance is left worth a second reading; what is reported is
then compared with the values themselves (:mod:`.search`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.kernels.distinct import DistinctNumbers
from secure_bloom.kernels.words import (
    HAS_AT,
    HAS_DIGIT,
    HAS_LETTER,
    HAS_PARTS,
    HASH_MASK,
    IS_EXAMPLE,
    LONGEST,
    Found,
    Room,
    find_words,
    fold_values,
    new_shapes,
)
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.tracing.subjects import SearchedColumn, Texts

#: How much a word says: a word that texts have by chance, one that few have, an address as
#: documents use them, and one that nobody writes by chance.
COMMON, RARE, EXAMPLE, DISTINCTIVE = range(4)
_FPP: Final = 1e-4
_MOST_BYTES: Final = 1 << 31
#: Bytes that a word takes: its entry, its bits, and room to sort it.
_BYTES_A_WORD: Final = 32
#: Threads that fold values.
FOLDERS: Final = min(4, os.cpu_count() or 1)
#: What an entry has beside the hash, in its lowest byte, while a column is read: whether the word
#: is a value, a date or time, a number; and its kind, or the digits of a number.
_IS_VALUE, _IS_MOMENT, _IS_NUMBER, _REST = 0x80, 0x40, 0x20, 0x1F
_MASK: Final = np.uint64(HASH_MASK)
#: Shorter words are not asked: letters of which texts are made, and numbers below 10,000.
_SHORTEST, _FEWEST_DIGITS = 4, 5
#: Numbers that are so dense that other columns have them by chance: fewer numbers between the
#: smallest and the largest than this for each value.
_SPREAD: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWords:
    """What the index has of a column. Without ``is_whole`` the memory was too small for all words.

    ``values`` counts distinct values that are long enough, ``left_out`` those of them that are not
    searched for, because numbers or dates are so dense that other columns have them by chance.
    With ``as_written`` the index has values that files have as they are written, and ``values``
    counts the rows of the column.  ``not_searched`` says why no value is searched for, or is None.
    """

    name: str
    values: int
    is_whole: bool = True
    left_out: int = 0
    as_written: bool = False
    not_searched: str | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the counts as they are in documents."""
        return {
            "column": self.name,
            "values": self.values,
            "left_out": self.left_out,
            "is_whole": self.is_whole,
            "as_written": self.as_written,
            "not_searched": self.not_searched,
        }


class WordIndex:
    """The words of all columns. Threads may share it.

    ``entries`` are in ascending order: the hash of a word, with its kind in the lowest byte, and
    whether it is a value.
    ``owners`` has the column of each.
    """

    def __init__(self, subjects: Sequence[SearchedColumn], taken: Sequence[_Taken]) -> None:
        self.subjects = tuple(subjects)
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
            filled.insert_hashes(self.entries[start : start + _INSERTED] & _MASK)
        self.blocks = filled._blocks()

    @classmethod
    def build(cls, subjects: Sequence[SearchedColumn], memory: int) -> WordIndex:
        """Read the values of all columns. Errors of reading are raised."""
        most = max(memory // _BYTES_A_WORD, 1_000) // max(len(subjects), 1)
        return cls(subjects, [_taken(subject, most) for subject in subjects])

    def found_in(self, text: bytes, room: Room) -> Iterator[tuple[NDArray[np.uint8], Found]]:
        """Yield the pieces of a text that fit into ``room``, each with the words that pass."""
        data, start = np.frombuffer(text, np.uint8), 0
        while start < len(data):
            step = data[start : start + room.size]
            is_end = start + len(step) == len(data)
            found = find_words(step, room, self.longest, self.shapes, self.blocks, is_last=is_end)
            yield step, found
            # A gap of a step and more has no atom to go on with.
            start += found.done or len(step)

    def matches(
        self, hashes: NDArray[np.uint64]
    ) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
        """Yield for each column the places in ``hashes`` of words that it has, and their entries.

        Entries are numbered through all columns.
        """
        # One search for all columns, which may be thousands.
        first = np.searchsorted(self.entries, hashes)
        counts = np.searchsorted(self.entries, hashes | ~_MASK, side="right") - first
        at = np.repeat(np.arange(len(hashes)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        numbers = np.repeat(first, counts) + np.arange(len(at)) - before
        for owner, own in self._by_owner(numbers):
            yield owner, at[own], numbers[own]

    def kinds_of(self, numbers: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield the kinds of some entries for each column that has some."""
        for owner, own in self._by_owner(numbers):
            yield owner, self.entries[numbers[own]].astype(np.uint8) & np.uint8(_REST)

    def are_values(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which entries are values as they are, and not parts or other notations."""
        found: NDArray[np.bool_] = (self.entries[numbers] & np.uint64(_IS_VALUE)) != 0
        return found

    def _by_owner(self, numbers: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Yield the places in ``numbers`` of the entries of each column that has some."""
        if not len(numbers):
            return iter(())
        owners = self.owners[numbers]
        places = np.argsort(owners, kind="stable")
        known, starts = np.unique(owners[places], return_index=True)
        return zip(known.tolist(), np.split(places, starts[1:]), strict=True)


#: Words that are inserted at a time: their hashes take memory of their own.
_INSERTED: Final = 1 << 20


@dataclass(slots=True)
class _Taken:
    entries: NDArray[np.uint64]
    longest: int
    shapes: NDArray[np.uint8]
    column: ColumnWords


class _Numbers:
    """How dense the numbers of a column are, by their digits."""

    def __init__(self) -> None:
        self.bounds: dict[int, tuple[int, int]] = {}
        self._moments = DistinctNumbers(np.int64, _MOST_MOMENTS)
        self._are_days = True

    def add_moments(self, moments: pa.Array, *, are_days: bool) -> None:
        """Take dates or times as numbers; ``are_days`` if each is the number of a day."""
        self._are_days = self._are_days and are_days
        self._moments.add(moments.to_numpy())

    def are_moments_dense(self, rows: int) -> bool:
        """Whether any column of dates or times of these years would have many of them."""
        found = self._moments.found()
        if len(found) < 2:
            return rows > 1
        # Whole minutes, or midnights, are the steps of a column of times that has no others.  Of
        # dates each day counts: one date a week is not dense, however even.
        step = 1 if self._are_days else max(1, int(np.gcd.reduce(np.diff(found))))
        steps = int(found[-1] - found[0]) // step + 1
        return max(len(found), rows) > _DENSE * steps

    def add(self, length: int, low: int, high: int) -> None:
        """Take the smallest and the largest of some numbers of ``length`` digits."""
        known = self.bounds.get(length, (low, high))
        self.bounds[length] = min(low, known[0]), max(high, known[1])


#: Of dense numbers and dates, a column has more than this share of all that there are between the
#: smallest and the largest: other columns have them by chance, so they are not searched for.
_DENSE: Final = 0.2
_MOST_MOMENTS: Final = 1 << 21


def _taken(subject: SearchedColumn, most: int) -> _Taken:
    parts: list[NDArray[np.uint64]] = []
    numbers, count, longest, is_whole = _Numbers(), 0, 0, True
    shapes = new_shapes()
    # Decoding, in this thread, and folding take about as long.
    for given, found in in_order(lambda it: (it, _folded(it)), subject.texts(), FOLDERS):
        if given.is_value:
            numbers.add_moments(given.moments, are_days=given.are_days)
        for bounds in found.bounds:
            numbers.add(*bounds)
        parts.append(found.entries)
        count += len(found.entries)
        longest = max(longest, found.longest)
        shapes |= found.shapes
        if count > max(2 * most, 1 << 20):
            parts = [_distinct(parts)]
            count = len(parts[0])
            if count > most:
                is_whole = False
                break
    entries = _distinct(parts)
    is_whole = is_whole and len(entries) <= most
    entries = entries[:most]
    info = entries.astype(np.uint8)
    is_value = (info & _IS_VALUE) != 0
    kept = ~_dense(info, numbers, subject.rows)
    column = ColumnWords(
        name=subject.name,
        values=max(int(is_value.sum()), subject.rows),
        is_whole=is_whole,
        as_written=subject.rows > 0,
        left_out=int((is_value & ~kept).sum()),
        not_searched=None if (is_value & kept).any() else _why(subject, is_value),
    )
    kinds = _judged(info, numbers, subject.rows)
    kinds |= info & np.uint8(_IS_VALUE)
    return _Taken((entries & _MASK | kinds)[kept], longest, shapes, column)


def _why(subject: SearchedColumn, is_value: NDArray[np.bool_]) -> str | None:
    """Return why no value of a column is searched for. Return None for a column without values."""
    if is_value.any():
        return "its numbers or dates are so dense that other columns have them by chance"
    has_values = any(len(array) > array.null_count for array in subject.values())
    return _TOO_SHORT if has_values else None


_TOO_SHORT: Final = (
    f"its values have fewer than {_SHORTEST} letters, are numbers of fewer than {_FEWEST_DIGITS} "
    f"digits or booleans, or have more than {LONGEST} bytes"
)


def _distinct(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the distinct words in ascending order. Of equal ones a value is kept."""
    whole = np.concatenate([*parts, np.empty(0, np.uint64)])
    whole.sort()
    is_last = np.ones(len(whole), np.bool_)
    np.greater(whole[1:] & _MASK, whole[:-1], out=is_last[:-1])
    return whole[is_last]


def _numbers_of(info: NDArray[np.uint8], digits: int) -> NDArray[np.bool_]:
    """Return which words are numbers of some digits."""
    found: NDArray[np.bool_] = (info & (_IS_NUMBER | _REST)) == (_IS_NUMBER | digits)
    return found


def _dense(info: NDArray[np.uint8], numbers: _Numbers, rows: int) -> NDArray[np.bool_]:
    """Return which words are numbers or dates that other columns have by chance."""
    dense = ((info & _IS_MOMENT) != 0) & numbers.are_moments_dense(rows)
    for digits, (low, high) in numbers.bounds.items():
        those = _numbers_of(info, digits)
        if max(int(those.sum()), rows) > _DENSE * (high - low + 1):
            dense |= those
    return np.asarray(dense, np.bool_)


class _Folded(NamedTuple):
    """Entries of texts, the longest of them, their heads and tails, and the bounds of numbers."""

    entries: NDArray[np.uint64]
    longest: int
    shapes: NDArray[np.uint8]
    bounds: list[tuple[int, int, int]]


def _folded(given: Texts) -> _Folded:
    """Return the words of texts."""
    offsets, data = binary_parts(given.texts)
    shapes = new_shapes()
    folded, ends, hashes, known = fold_values(offsets, data, shapes)
    length = np.diff(ends, prepend=0)
    is_number = (known & (HAS_LETTER | HAS_DIGIT)) == HAS_DIGIT
    kept = (length >= np.where(is_number, _FEWEST_DIGITS, _SHORTEST)) & (length <= LONGEST)
    is_moment = len(given.moments) > 0
    digits = np.minimum(length, _REST).astype(np.uint8)
    if is_moment:
        info = np.full(len(hashes), COMMON | _IS_MOMENT, np.uint8)
    else:
        info = np.where(is_number, digits | _IS_NUMBER, _kinds(known, length)).astype(np.uint8)
    info |= _IS_VALUE * given.is_value
    bounds = []
    for size in [] if is_moment else np.unique(digits[kept & is_number]).tolist():
        starts = (ends - length)[kept & is_number & (digits == size)]
        bounds.append((size, *_bounds(folded, starts, size)))
    longest = int(length[kept].max(initial=0))
    return _Folded((hashes | info)[kept], longest, shapes, bounds)


def _bounds(folded: NDArray[np.uint8], starts: NDArray[np.int64], digits: int) -> tuple[int, int]:
    """Return the smallest and the largest of some numbers, by their first digits."""
    size = min(digits, 18)
    found = folded[starts[:, None] + np.arange(size)].astype(np.int64) - ord("0")
    numbers = found @ (10 ** np.arange(size - 1, -1, -1, dtype=np.int64))
    return int(numbers.min()), int(numbers.max())


def _kinds(known: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the kinds of words that are no numbers, by how distinctive they are."""
    mixed = (known & (HAS_LETTER | HAS_DIGIT)) == (HAS_LETTER | HAS_DIGIT)
    has_parts, has_at = (known & HAS_PARTS) != 0, (known & HAS_AT) != 0
    kinds = np.full(len(known), COMMON, np.uint8)
    kinds[(mixed & (length >= 6)) | (has_parts & (length >= 8))] = RARE
    kinds[(mixed & (length >= 10)) | (~has_parts & (length >= 24))] = DISTINCTIVE
    kinds[has_at & (length >= 6)] = DISTINCTIVE
    kinds[(known & IS_EXAMPLE) != 0] = EXAMPLE
    return kinds


def _judged(info: NDArray[np.uint8], numbers: _Numbers, rows: int) -> NDArray[np.uint8]:
    """Return the kinds of words.

    A number is judged by how many others of its length there could be.
    """
    kinds = np.bitwise_and(info, np.uint8(_REST))
    kinds[(info & _IS_NUMBER) != 0] = COMMON
    for digits, (low, high) in numbers.bounds.items():
        those = _numbers_of(info, digits)
        if digits >= 8 and high - low + 1 >= _SPREAD * max(int(those.sum()), rows):
            kinds[those] = RARE if digits < 10 else DISTINCTIVE
    return kinds


def binary_parts(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offsets and the bytes of an array of large_binary."""
    if len(texts) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]
