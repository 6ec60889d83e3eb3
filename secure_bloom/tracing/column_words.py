"""The words of a column, and how distinctive each word is. Values are folded first.

    taken = taken_words(column, most)                   all words, if there are at most ``most``
    sample = sampled_words(column, most, insert)        a sample; ``insert`` gets all words
    taken = words_among(column, sample, hashes)         only the words with one of these hashes

A word is stored as an entry, a number of 64 bits: the hash of the word, with properties of the word
in the lowest byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
    fold_values,
    new_shapes,
)
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.tracing.subjects import SearchedColumn, Texts

#: How much a word says, from least to most: a number that every counter reaches, a word that texts
#: have by chance, one that few have, an address as documents use them, and one that nobody writes
#: by chance.
SERIAL, COMMON, RARE, EXAMPLE, DISTINCTIVE = range(5)
#: Threads that fold values.
FOLDERS: Final = min(4, os.cpu_count() or 1)
#: What an entry has beside the hash, in its lowest byte, while a column is read: whether the word
#: is a value, a date or time, a number, a number backwards; and its kind, or its digits.
IS_VALUE: Final = 0x80
_IS_MOMENT, _IS_NUMBER, _IS_REVERSED = 0x40, 0x20, 0x60
REST: Final = 0x1F
MASK: Final = np.uint64(HASH_MASK)
#: Shorter words are not asked: letters of which texts are made, and numbers below 10,000.
_SHORTEST, _FEWEST_DIGITS = 4, 5
#: Numbers that are so dense that other columns have them by chance: fewer numbers between the
#: smallest and the largest than this for each value.
_SPREAD: Final = 1_000
#: Entries that wait, at least, before equal ones are merged.
_GATHERED: Final = 1 << 20
#: Of a column that does not fit into memory, about this many words are counted, or some times more.
_SAMPLED: Final = 1 << 12
#: The filter of wanted hashes: few others pass it to be looked up.
_FPP: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWords:
    """What the index has of a column. Without ``is_whole``, not all of its words fit into memory.

    ``values`` counts the distinct values that are long enough. ``left_out`` counts the long enough
    values that are not searched for, because numbers or dates are so dense that other columns have
    them by chance. With ``is_estimated`` the words were kept in a Bloom filter, because the column
    does not fit into memory, and both counts are estimates. ``short_or_long`` counts the distinct
    values of a length that is not searched for. With ``as_written`` the index has only
    values that the files have exactly as written, and ``values`` counts the rows of the column.
    ``not_searched`` says why no value is searched for, or is None.
    """

    name: str
    values: int
    is_whole: bool = True
    left_out: int = 0
    is_estimated: bool = False
    as_written: bool = False
    not_searched: str | None = None
    short_or_long: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the counts in the form of JSON documents."""
        return {
            "column": self.name,
            "values": self.values,
            "left_out": self.left_out,
            "short_or_long": self.short_or_long,
            "is_whole": self.is_whole,
            "is_estimated": self.is_estimated,
            "as_written": self.as_written,
            "not_searched": self.not_searched,
        }

    def partly_searched(self) -> Iterator[str]:
        """Yield a text for the values that were not searched for, if other values were."""
        if self.not_searched is not None:
            return
        if self.left_out:
            yield (
                f"{self.left_out:,} of {self.values:,} values were not searched for: they are so "
                "dense that other columns have them by chance"
            )
        if self.short_or_long:
            yield (
                f"{self.short_or_long:,} values were not searched for: words of fewer than "
                f"{_SHORTEST} letters, numbers of fewer than {_FEWEST_DIGITS} digits, or more than "
                f"{LONGEST} bytes"
            )


Entries = NDArray[np.uint64]


@dataclass(slots=True)
class TakenWords:
    """The searched words of one column.

    ``entries`` has the words with their kinds, ``longest`` the length of the longest word, and
    ``shapes`` the heads and tails of all words.
    """

    entries: Entries
    longest: int
    shapes: NDArray[np.uint8]
    column: ColumnWords
    numbers: _Numbers


def taken_words(subject: SearchedColumn, most: int) -> TakenWords:
    """Read all words of a column, or stop after the first ``most``."""
    reading, gathered, is_whole = _Reading(subject), _Gathered(most), True
    for entries in reading.entries():
        gathered.add(entries)
        if gathered.known > most:
            is_whole = False
            break
    entries = gathered.found()
    return _taken(reading, entries[:most], is_whole=is_whole and len(entries) <= most)


def sampled_words(
    subject: SearchedColumn, most: int, insert: Callable[[Entries], object]
) -> TakenWords:
    """Read all words of a column, and give their hashes to ``insert``. Return a sample of them.

    The counts are estimated from the sample.
    """
    reading, gathered = _Reading(subject), _Gathered(0)
    halvings = max(most // _SAMPLED, 1).bit_length() - 1
    last = np.uint64((1 << 64 >> halvings) - 1)
    for entries in reading.entries():
        insert(entries & MASK)
        gathered.add(entries[entries <= last])
    taken = _taken(reading, gathered.found(), times=1 << halvings)
    taken.column = replace(taken.column, is_estimated=True)
    return taken


def words_among(subject: SearchedColumn, sample: TakenWords, hashes: Entries) -> TakenWords:
    """Read a column again, and return its words whose hash is in a sorted array of hashes."""
    wanted, gathered = WantedHashes(hashes), _Gathered(len(hashes))
    for entries in _Reading(subject).entries():
        gathered.add(entries[wanted.places(entries & MASK)])
    kept = _kept(gathered.found(), sample.numbers)
    return TakenWords(kept, sample.longest, sample.shapes, sample.column, sample.numbers)


class WantedHashes:
    """A sorted set of hashes, made for looking many other hashes up in it."""

    def __init__(self, hashes: Entries) -> None:
        self._hashes = hashes
        self._filter = SplitBlockBloomFilter(block_count_for(max(len(hashes), 1), _FPP, 1 << 28))
        self._filter.insert_hashes(hashes)

    def places(self, found: Entries) -> NDArray[np.intp]:
        """Return the positions of the hashes in ``found`` that are in the set."""
        at = np.flatnonzero(self._filter.check_hashes(found))
        return at[np.isin(found[at], self._hashes)]


class _Gathered:
    """Collects entries. Entries of the same word become one.

    The joined entry is marked as a value if any of the entries is.
    """

    def __init__(self, most: int) -> None:
        self._room = max(2 * most, _GATHERED)
        self._parts: list[Entries] = []
        self._count = 0
        #: Distinct words when they were last counted.
        self.known = 0

    def add(self, entries: Entries) -> None:
        self._parts.append(entries)
        self._count += len(entries)
        if self._count > max(self._room, 2 * self.known):
            self.found()

    def found(self) -> Entries:
        """Return the distinct words in ascending order."""
        whole = np.concatenate([*self._parts, np.empty(0, np.uint64)])
        whole.sort()
        is_last = np.ones(len(whole), np.bool_)
        np.greater(whole[1:] & MASK, whole[:-1], out=is_last[:-1])
        self._parts = [whole[is_last]]
        self._count = self.known = len(self._parts[0])
        return self._parts[0]


class _Reading:
    """Reads the words of a column, and collects statistics of all of them."""

    def __init__(self, subject: SearchedColumn) -> None:
        self.subject = subject
        self.numbers, self.longest, self.shapes = _Numbers(subject.rows), 0, new_shapes()
        self.short_or_long = DistinctNumbers(np.uint64, _MOST_SHORT_OR_LONG)

    def entries(self) -> Iterator[Entries]:
        """Yield the entries of some values at a time."""
        # Decoding, in this thread, and folding take about as long.
        texts = self.subject.texts()
        for given, found in in_order(lambda it: (it, _folded(it)), texts, FOLDERS):
            if given.is_value:
                self.numbers.add_moments(given.moments, are_days=given.are_days)
                self.short_or_long.add(found.short_or_long)
            for bounds in found.bounds:
                self.numbers.add(*bounds)
            self.longest = max(self.longest, found.longest)
            self.shapes |= found.shapes
            yield found.entries


class _Numbers:
    """How dense the numbers of a column are, for each number of digits."""

    def __init__(self, rows: int) -> None:
        self.bounds: dict[int, tuple[int, int]] = {}
        self._moments = DistinctNumbers(np.int64, _MOST_MOMENTS)
        self._are_days = True
        #: The rows of the column if few of its values are read, else 0.
        self._rows = rows
        self.counts: dict[int, int] = {}

    def add_moments(self, moments: pa.Array, *, are_days: bool) -> None:
        """Add dates or times as numbers. With ``are_days`` each number counts days."""
        self._are_days = self._are_days and are_days
        self._moments.add(moments.to_numpy())

    def are_moments_dense(self) -> bool:
        """Return whether dates and times are so dense that other columns have many by chance."""
        found = self._moments.found()
        if len(found) < 2:
            return self._rows > 1
        # Whole minutes, or midnights, are the steps of a column of times that has no others.  Of
        # dates each day counts: one date a week is not dense, however even.
        step = 1 if self._are_days else max(1, int(np.gcd.reduce(np.diff(found))))
        steps = int(found[-1] - found[0]) // step + 1
        return max(len(found), self._rows) > _DENSE * steps

    def add(self, length: int, low: int, high: int) -> None:
        """Add the smallest and the largest of some numbers that have ``length`` digits."""
        known = self.bounds.get(length, (low, high))
        self.bounds[length] = min(low, known[0]), max(high, known[1])

    def count(self, info: NDArray[np.uint8], times: int) -> None:
        """Count the numbers of each length. Each entry represents ``times`` numbers."""
        for digits in self.bounds:
            own = (info & _IS_REVERSED) != _IS_REVERSED
            found = int((_numbers_of(info, digits) & own).sum())
            self.counts[digits] = max(found * times, self._rows)


#: Of dense numbers and dates, a column has more than this share of all that there are between the
#: smallest and the largest: other columns have them by chance, so they are not searched for.
_DENSE: Final = 0.2
_MOST_MOMENTS: Final = 1 << 21
#: The most values of other lengths that are counted.
_MOST_SHORT_OR_LONG: Final = 1 << 20


def _taken(
    reading: _Reading, entries: Entries, *, is_whole: bool = True, times: int = 1
) -> TakenWords:
    """Return the words that were read. Each entry represents ``times`` words of the column."""
    subject, numbers = reading.subject, reading.numbers
    numbers.count(entries.astype(np.uint8), times)
    kept = _kept(entries, numbers)
    count, searched = (int((it & np.uint64(IS_VALUE) != 0).sum()) for it in (entries, kept))
    column = ColumnWords(
        name=subject.name,
        values=max(count * times, subject.rows),
        is_whole=is_whole,
        as_written=subject.rows > 0,
        left_out=(count - searched) * times,
        short_or_long=len(reading.short_or_long.found()),
        not_searched=None if searched else _why(subject, has_values=count > 0),
    )
    return TakenWords(kept, reading.longest, reading.shapes, column, numbers)


def _kept(entries: Entries, numbers: _Numbers) -> Entries:
    """Return the words that are searched for, with their kinds."""
    info = entries.astype(np.uint8)
    kinds = _judged(info, numbers) | (info & np.uint8(IS_VALUE))
    return (entries & MASK | kinds)[~_dense(info, numbers)]


def _why(subject: SearchedColumn, *, has_values: bool) -> str | None:
    """Return why no value of a column is searched for. None if the column has no values.

    ``has_values`` says that the column has values that are long enough.
    """
    if has_values:
        return "its numbers or dates are so dense that other columns have them by chance"
    are_there = any(len(array) > array.null_count for array in subject.values())
    return _TOO_SHORT if are_there else None


_TOO_SHORT: Final = (
    f"its values have fewer than {_SHORTEST} letters, are numbers of fewer than {_FEWEST_DIGITS} "
    f"digits or booleans, or have more than {LONGEST} bytes"
)


def _numbers_of(info: NDArray[np.uint8], digits: int) -> NDArray[np.bool_]:
    """Return a mask of the words that are numbers with ``digits`` digits."""
    found: NDArray[np.bool_] = (info & (_IS_NUMBER | REST)) == (_IS_NUMBER | digits)
    return found


def _dense(info: NDArray[np.uint8], numbers: _Numbers) -> NDArray[np.bool_]:
    """Return a mask of the numbers and dates that other columns have by chance."""
    dense = ((info & _IS_REVERSED) == _IS_MOMENT) & numbers.are_moments_dense()
    for digits, (low, high) in numbers.bounds.items():
        if numbers.counts[digits] > _DENSE * (high - low + 1):
            dense |= _numbers_of(info, digits)
    return np.asarray(dense, np.bool_)


class _Folded(NamedTuple):
    """The words of some texts: their entries, shapes and number bounds, and the longest length.

    ``short_or_long`` has the hashes of words of other lengths than those that are searched for.
    """

    entries: NDArray[np.uint64]
    longest: int
    shapes: NDArray[np.uint8]
    bounds: list[tuple[int, int, int]]
    short_or_long: NDArray[np.uint64]


def _folded(given: Texts) -> _Folded:
    """Return the words of texts."""
    offsets, data = binary_parts(given.texts)
    shapes = new_shapes()
    folded, ends, hashes, known = fold_values(offsets, data, shapes)
    length = np.diff(ends, prepend=0)
    is_number = (known & (HAS_LETTER | HAS_DIGIT)) == HAS_DIGIT
    kept = (length >= np.where(is_number, _FEWEST_DIGITS, _SHORTEST)) & (length <= LONGEST)
    is_moment = len(given.moments) > 0
    digits = np.minimum(length, REST).astype(np.uint8)
    if is_moment:
        info = np.full(len(hashes), (SERIAL if given.are_serial else COMMON) | _IS_MOMENT, np.uint8)
    else:
        mark = _IS_REVERSED if given.are_reversed else _IS_NUMBER
        info = np.where(is_number, digits | mark, _kinds(known, length)).astype(np.uint8)
    info |= IS_VALUE * given.is_value
    bounds = []
    for size in (
        [] if is_moment or given.are_reversed else np.unique(digits[kept & is_number]).tolist()
    ):
        starts = (ends - length)[kept & is_number & (digits == size)]
        bounds.append((size, *_bounds(folded, starts, size)))
    longest = int(length[kept].max(initial=0))
    others = hashes[~kept & (length > 0)]
    return _Folded((hashes | info)[kept], longest, shapes, bounds, others)


def _bounds(folded: NDArray[np.uint8], starts: NDArray[np.int64], digits: int) -> tuple[int, int]:
    """Return the smallest and the largest of some numbers with ``digits`` digits.

    Only their first 18 digits are read.
    """
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


def _judged(info: NDArray[np.uint8], numbers: _Numbers) -> NDArray[np.uint8]:
    """Return the kinds of words.

    The kind of a number depends on how many numbers its range could hold for each number it has.
    Backwards it says as much as a number with two digits fewer.
    """
    kinds = np.bitwise_and(info, np.uint8(REST))
    kinds[(info & _IS_NUMBER) != 0] = COMMON
    is_reversed = (info & _IS_REVERSED) == _IS_REVERSED
    for digits, (low, high) in numbers.bounds.items():
        if high - low + 1 >= _SPREAD * numbers.counts[digits]:
            own = _numbers_of(info, digits)
            for read, size in ((own & ~is_reversed, digits), (own & is_reversed, digits - 2)):
                kinds[read] = COMMON if size < 8 else RARE if size < 10 else DISTINCTIVE
    return kinds


def binary_parts(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offsets and the bytes of an array of large_binary."""
    if len(texts) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]
