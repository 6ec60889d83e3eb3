"""One index of the words of all columns: a filter that a text's words are asked, then their hashes.

The filter lets one word in 10,000 pass that no value has.  What passes is looked up among the
64-bit hashes of the values, so that no chance is left worth a second reading; what is reported is
then compared with the values themselves (:mod:`.search`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.kernels.words import (
    HAS_AT,
    HAS_DIGIT,
    HAS_LETTER,
    HAS_PARTS,
    HEADS,
    IS_EXAMPLE,
    LONGEST,
    add_heads,
    fold_values,
)
from secure_bloom.tracing.subjects import SearchedColumn, Texts

#: How much a word says: a word that texts have by chance, one that few have, an address as
#: documents use them, and one that nobody writes by chance.
COMMON, RARE, EXAMPLE, DISTINCTIVE = range(4)
_FPP: Final = 1e-4
_MOST_BYTES: Final = 1 << 31
#: Bytes that a word takes: its hash, its column and kind, its bits, and room to sort it.
_BYTES_A_WORD: Final = 40
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
    """

    name: str
    values: int
    is_whole: bool = True
    left_out: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the counts as they are in documents."""
        return {
            "column": self.name,
            "values": self.values,
            "left_out": self.left_out,
            "is_whole": self.is_whole,
        }


class WordIndex:
    """The words of all columns. Threads may share it."""

    def __init__(
        self, hashes: NDArray[np.uint64], owners: NDArray[np.uint16], kinds: NDArray[np.uint8]
    ) -> None:
        order = np.argsort(hashes, kind="stable")
        self.hashes, self.owners, self.kinds = hashes[order], owners[order], kinds[order]
        self.columns: Sequence[ColumnWords] = ()
        self.subjects: Sequence[SearchedColumn] = ()
        self.lengths = np.zeros(LONGEST // 8 + 1, np.uint8)
        self.heads = np.zeros(HEADS, np.uint8)
        self.filter = SplitBlockBloomFilter(block_count_for(max(len(hashes), 1), _FPP, _MOST_BYTES))
        self.filter.insert_hashes(self.hashes)
        self.blocks = self.filter._blocks()

    @classmethod
    def build(cls, subjects: Sequence[SearchedColumn], memory: int) -> WordIndex:
        """Read the values of all columns. Errors of reading are raised."""
        most = max(memory // _BYTES_A_WORD, 1_000)
        taken = [_taken(subject, most // max(len(subjects), 1)) for subject in subjects]
        index = cls(
            np.concatenate([it.hashes for it in taken] or [np.empty(0, np.uint64)]),
            np.concatenate(
                [np.full(len(it.hashes), n, np.uint16) for n, it in enumerate(taken)]
                or [np.empty(0, np.uint16)]
            ),
            np.concatenate([it.kinds for it in taken] or [np.empty(0, np.uint8)]),
        )
        bits = np.zeros(LONGEST + 1, np.uint8)
        for it in taken:
            bits |= it.lengths
            index.heads |= it.heads
        index.lengths = np.packbits(bits, bitorder="little")
        index.columns = tuple(it.column for it in taken)
        index.subjects = tuple(subjects)
        return index

    def matches(
        self, hashes: NDArray[np.uint64]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield pairs of positions: in ``hashes``, and of equal hashes here.

        A word of several columns has an entry for each.
        """
        place = np.searchsorted(self.hashes, hashes)
        left = np.arange(len(hashes))
        while len(left):
            inside = place < len(self.hashes)
            left, place = left[inside], place[inside]
            equal = self.hashes[place] == hashes[left]
            left, place = left[equal], place[equal]
            if len(left):
                yield left, place
            # Entries of one word follow each other.
            place = place + 1


@dataclass(slots=True)
class _Taken:
    hashes: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    lengths: NDArray[np.uint8]
    heads: NDArray[np.uint8]
    column: ColumnWords


class _Numbers:
    """How dense the numbers of a column are, by their digits."""

    def __init__(self) -> None:
        self.bounds: dict[int, tuple[int, int]] = {}
        self._moments = np.empty(0, np.int64)

    def add_moments(self, moments: pa.Array) -> None:
        """Take dates or times as numbers."""
        if len(moments) and len(self._moments) < _MOST_MOMENTS:
            self._moments = np.union1d(self._moments, moments.to_numpy())

    @property
    def are_moments_dense(self) -> bool:
        """Whether a column of any dates or times of these years would have many of them."""
        found = self._moments
        if len(found) < 2:
            return False
        # Whole minutes, or midnights, are the steps of a column that has no others.
        steps = int(found[-1] - found[0]) // max(1, int(np.gcd.reduce(np.diff(found)))) + 1
        return len(found) > _DENSE * steps

    def add(self, folded: NDArray[np.uint8], starts: NDArray[np.int64], length: int) -> None:
        """Take numbers of ``length`` digits."""
        digits = folded[starts[:, None] + np.arange(min(length, 18))].astype(np.int64) - 48
        numbers = digits @ (10 ** np.arange(min(length, 18) - 1, -1, -1, dtype=np.int64))
        low, high = int(numbers.min()), int(numbers.max())
        known = self.bounds.get(length, (low, high))
        self.bounds[length] = min(low, known[0]), max(high, known[1])


#: Of dense numbers and dates, a column has more than this share of all that there are between the
#: smallest and the largest: other columns have them by chance, so they are not searched for.
_DENSE: Final = 0.2
_MOST_MOMENTS: Final = 1 << 21
#: Set in a kind while a column is read: the number of digits of a number, to be judged at the end.
_NUMBER: Final = 0x80


def _taken(subject: SearchedColumn, most: int) -> _Taken:
    parts: list[NDArray[np.void]] = []
    numbers, count, is_whole = _Numbers(), 0, True
    lengths, heads = np.zeros(LONGEST + 1, np.uint8), np.zeros(HEADS, np.uint8)
    for texts in subject.texts():
        if texts.is_value:
            numbers.add_moments(texts.moments)
        for words in _folded(texts, numbers, heads):
            parts.append(words)
            count += len(words)
            lengths[np.unique(words["length"])] = 1
        if count > max(2 * most, 1 << 20):
            parts = [_distinct(parts)]
            count = len(parts[0])
            if count > most:
                is_whole = False
                break
    words = _distinct(parts)
    is_whole = is_whole and len(words) <= most
    words = words[:most]
    kinds, kept = _judged(words, numbers), ~_dense(words, numbers)
    values = int(words["is_value"].sum())
    column = ColumnWords(
        name=subject.name,
        values=values,
        is_whole=is_whole,
        left_out=values - int(words["is_value"][kept].sum()),
    )
    return _Taken(words["hash"][kept], kinds[kept], lengths, heads, column)


def _dense(words: NDArray[np.void], numbers: _Numbers) -> NDArray[np.bool_]:
    """Return which words are numbers or dates that other columns have by chance."""
    dense = (words["is_moment"] == 1) & numbers.are_moments_dense
    for digits, (low, high) in numbers.bounds.items():
        those = (words["number"] == 1) & (words["length"] == digits)
        if int(those.sum()) > _DENSE * (high - low + 1):
            dense |= those
    return np.asarray(dense, np.bool_)


_WORD: Final = np.dtype(
    [
        ("hash", "<u8"),
        ("kind", "u1"),
        ("length", "u1"),
        ("is_value", "u1"),
        ("number", "u1"),
        ("is_moment", "u1"),
    ]
)


def _distinct(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    whole = np.concatenate(parts) if parts else np.empty(0, _WORD)
    _, first = np.unique(whole["hash"], return_index=True)
    return whole[first]


def _folded(
    given: Texts, numbers: _Numbers, heads: NDArray[np.uint8]
) -> Iterator[NDArray[np.void]]:
    """Yield the words of texts, forwards and backwards, and add their heads."""
    offsets, data = binary_parts(given.texts)
    is_moment = len(given.moments) > 0
    for backwards in (False, True):
        folded, ends, hashes, known = fold_values(offsets, 0, data, backwards=backwards)
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        length = ends - starts
        is_number = (known & (HAS_LETTER | HAS_DIGIT)) == HAS_DIGIT
        kept = (length >= np.where(is_number, _FEWEST_DIGITS, _SHORTEST)) & (length <= LONGEST)
        # Digits backwards are other digits: any number would be one.
        kept &= ~(is_number & backwards)
        add_heads(heads, folded, starts[kept])
        words = np.zeros(int(kept.sum()), _WORD)
        words["hash"], words["length"] = hashes[kept], length[kept]
        words["is_value"] = given.is_value and not backwards
        words["kind"] = COMMON if is_moment else _kinds(known[kept], length[kept])
        words["number"] = is_number[kept] & (not is_moment)
        words["is_moment"] = is_moment
        for digits in np.unique(words["length"][words["number"] == 1]).tolist():
            numbers.add(folded, starts[kept & is_number & (length == digits)], digits)
        yield words


def _kinds(known: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return how much words say that are no numbers."""
    mixed = (known & (HAS_LETTER | HAS_DIGIT)) == (HAS_LETTER | HAS_DIGIT)
    has_parts, has_at = (known & HAS_PARTS) != 0, (known & HAS_AT) != 0
    kinds = np.full(len(known), COMMON, np.uint8)
    kinds[(mixed & (length >= 6)) | (has_parts & (length >= 8))] = RARE
    kinds[(mixed & (length >= 10)) | (~has_parts & (length >= 24))] = DISTINCTIVE
    kinds[has_at & (length >= 6)] = DISTINCTIVE
    kinds[(known & IS_EXAMPLE) != 0] = EXAMPLE
    return kinds


def _judged(words: NDArray[np.void], numbers: _Numbers) -> NDArray[np.uint8]:
    """Return the kinds of words; numbers are judged by how many there are of their length."""
    kinds: NDArray[np.uint8] = words["kind"].copy()
    is_number = words["number"] == 1
    for digits, (low, high) in numbers.bounds.items():
        those = is_number & (words["length"] == digits)
        is_sparse = high - low + 1 >= _SPREAD * int(those.sum())
        kind = COMMON if digits < 8 or not is_sparse else RARE if digits < 10 else DISTINCTIVE
        kinds[those] = kind
    return kinds


def binary_parts(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the offsets and the bytes of an array of large_binary."""
    if len(texts) == 0:
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    buffers = texts.buffers()
    offsets = np.frombuffer(buffers[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.empty(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return offsets - offsets[0], data[offsets[0] : offsets[-1]]


def folded_words(texts: Iterable[pa.Array]) -> Iterator[tuple[NDArray[np.uint64], list[bytes]]]:
    """Yield the hashes and the folded words of texts, forwards and backwards."""
    for array in texts:
        offsets, data = binary_parts(array)
        for backwards in (False, True):
            folded, ends, hashes, _ = fold_values(offsets, 0, data, backwards=backwards)
            whole = folded.tobytes()
            bounds = [0, *ends.tolist()]
            yield hashes, _Slices(whole, bounds)  # type: ignore[misc]


class _Slices:
    """Parts of bytes, cut when they are asked for."""

    def __init__(self, whole: bytes, bounds: list[int]) -> None:
        self._whole, self._bounds = whole, bounds

    def __getitem__(self, i: int) -> bytes:
        return self._whole[self._bounds[i] : self._bounds[i + 1]]
