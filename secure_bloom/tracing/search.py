"""Look up all words of a file in an index, then compare the words that it has with the values.

The first step reads each file once. For each part it keeps the index entries of the words that were
found, and some of the words. The second step reads the values of the columns concerned once more,
for all files together. A reported word was equal to a value (except for case, marks and white
space), or to a digest of one.
"""

from __future__ import annotations

import io
import threading
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import BinaryIO, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import KmsUnavailableError, SecureBloomError
from secure_bloom.kernels.distinct import DistinctNumbers, distinct
from secure_bloom.kernels.words import (
    LONGEST,
    Found,
    Room,
    first_of_both,
    fold_values,
    spelling,
)
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.running.positioned_stream import PositionedStream
from secure_bloom.storage import InputFile
from secure_bloom.tracing.column_words import (
    DISTINCTIVE,
    FOLDERS,
    MASK,
    REST,
    Entries,
    WantedHashes,
    binary_parts,
)
from secure_bloom.tracing.content import MARKS, Opened, Part, is_marked
from secure_bloom.tracing.encodings import byte_order, decoded
from secure_bloom.tracing.forms import DIGESTS, XXH64_SIZE, digests, plain_texts
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.packed import PIECE, TOO_MANY, UnreadError, is_utf8
from secure_bloom.tracing.parquet_columns import Protected
from secure_bloom.tracing.runs import LONGEST_KEY, in_runs, is_content, is_file
from secure_bloom.tracing.sources import TOO_DEEP, parts_of
from secure_bloom.tracing.subjects import SearchedColumn, Texts

#: Bytes of a text that are asked at a time: what the kernel writes stays in the cache.
_STEP: Final = 1 << 18
#: How often a text in another text is decoded.
_DEEPEST_ENCODING: Final = 4
#: The words of a part and a column that are kept to be confirmed, and the digests.
_MOST_KEPT, _MOST_DIGESTS = 1_000, 50_000
#: The distinct values of a column of a file that are counted.
_MOST_COUNTED: Final = 1 << 21
#: A text is cut at a line end within this many of its last bytes.
_LONGEST_LINE: Final = 1 << 16
#: Shorter values hold no packed text, and the bytes with which the others begin.
_SHORTEST_PACKED: Final = 16
#: Bytes by which a part of a run is recognized: fewer than a line of Base64 holds.
_COMPARED: Final = 40
_FIRST_TWO: Final = np.array([int.from_bytes(mark[:2], "big") for mark in MARKS], np.uint16)
_SIZES: Final = frozenset({*DIGESTS.values(), XXH64_SIZE})
#: Values that begin like packed data and are not: a few of chance, or a file made to take time.
_MOST_DAMAGED: Final = 10_000
_TOO_MANY_DAMAGED: Final = f"more than {_MOST_DAMAGED:,} values that cannot be unpacked"
#: Smaller numbers are no hashes.
_LEAST_HASH: Final = 1 << 48


@dataclass(slots=True, kw_only=True)
class PartTrace:
    """What was found in a part of a file: entries of the index, some words, and possible digests.

    ``confirmed`` has, for each column, how many of the kept words were compared, and how many were
    equal to a value.
    """

    place: str
    size: int = 0
    distinct: int | None = None
    entries: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    words: dict[int, dict[int, Word]] = field(default_factory=dict, repr=False)
    digests: dict[bytes, None] = field(default_factory=dict, repr=False)
    unsure: list[tuple[int, frozenset[bytes]]] = field(default_factory=list, repr=False)
    confirmed: dict[int, tuple[int, int]] = field(default_factory=dict)
    confirmed_digests: dict[int, int] = field(default_factory=dict)


class Word(NamedTuple):
    """A word of a text: folded, in the direction of :func:`first_of_both`, and as written."""

    folded: bytes
    written: bytes


@dataclass(slots=True, kw_only=True)
class FileTrace:
    """What was found in a file, before it is confirmed. ``unread`` lists places and reasons."""

    path: str
    size: int = 0
    asked: int = 0
    parts: list[PartTrace] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)


def trace_file(
    file: InputFile, index: WordIndex, threads: int = 1, keys: KeyResolver | None = None
) -> FileTrace:
    """Return which words of the columns are in any part of a file.

    ``threads`` is how many threads search one text together.  ``keys`` open an encrypted Parquet
    file.
    """
    stream = cast("BinaryIO", io.BufferedReader(PositionedStream(file.read_at, file.size), PIECE))
    opened = Opened.of(file.size, None if keys is None else Protected(file, keys))
    trace = trace_parts(file.path, parts_of(stream, opened), index, opened, threads)
    trace.size = file.size
    return trace


def trace_parts(
    path: str,
    parts: Iterable[Part],
    index: WordIndex,
    opened: Opened | None = None,
    threads: int = 1,
) -> FileTrace:
    """Return which words of the columns are in parts of a file."""
    opened = Opened.of(0) if opened is None else opened
    trace, scan = FileTrace(path=path), _Scan(index, threads, opened.budget.processes)
    try:
        for part in parts:
            _add(trace, scan.part(part))
    except UnreadError as error:
        opened.missed("", error)
    except KmsUnavailableError:
        raise
    except SecureBloomError as error:
        opened.missed("", UnreadError(error.message))
    # Any error of a library: what lies in a folder may be anything, and its text may hold values.
    except Exception as error:
        opened.missed("", UnreadError(f"an unforeseen {type(error).__name__}"))
    trace.asked, trace.unread = scan.asked, [*opened.unread, *scan.missed()]
    return trace


def trace_text(path: str, place: str, text: bytes, index: WordIndex) -> FileTrace:
    """Return which words are in a text that is not a file, such as a file's name."""
    trace = trace_parts(path, [Part(place=place, pieces=iter([text]))], index)
    trace.size = len(text)
    return trace


def texts_with_values(texts: Iterable[bytes], index: WordIndex) -> set[bytes]:
    """Return the texts, such as file names, that have a word or a digest of a value.

    A text that was not read whole may have one. Any name of 22 letters may be a digest, so digests
    are confirmed: for all texts together, by reading all values again.
    """
    unread: dict[bytes, list[str]] = {}
    traces = _traces_of(texts, index, unread)
    unsure = [part for part in traces.values() if not len(part.entries)]
    if unsure:
        confirm([FileTrace(path="", parts=unsure)], index)
    found = {text for text, part in traces.items() if len(part.entries) or part.confirmed_digests}
    return found | unread.keys()


def _traces_of(
    texts: Iterable[bytes], index: WordIndex, unread: dict[bytes, list[str]]
) -> dict[bytes, PartTrace]:
    """Return the traces of the texts that have a word or a possible digest.

    ``unread`` gets the texts that were not read whole, with the reasons.
    """
    traces: dict[bytes, PartTrace] = {}
    for group in _in_groups(sorted(set(texts))):
        together = trace_text("", "", b"\n".join(group), index)
        for text in group if together.parts or together.unread else ():
            trace = trace_text("", "", text, index)
            for part in trace.parts:
                traces[text] = part
            if trace.unread:
                unread[text] = [reason for _, reason in trace.unread]
    return traces


def _in_groups(texts: list[bytes]) -> Iterator[list[bytes]]:
    return (texts[start : start + 1_000] for start in range(0, len(texts), 1_000))


def _add(trace: FileTrace, part: PartTrace) -> None:
    if len(part.entries) or part.digests:
        trace.parts.append(part)


class _Scan:
    """Looks up the words of the parts of one file."""

    def __init__(self, index: WordIndex, threads: int, processes: Iterator[int]) -> None:
        self._index = index
        self._threads = threads
        self._processes = processes
        #: Each thread has memory of its own.
        self._own = threading.local()
        self.asked = self._damaged = 0
        #: What was not read of files inside texts and columns: places and reasons.
        #: With the number of values of a column.
        self.unread: dict[tuple[str, str], int] = {}

    def part(self, part: Part) -> PartTrace:
        """Return the trace of a part."""
        seen = _Seen(self._index, part.place)
        if part.pieces is not None:
            blocks = _blocks(_as_utf8(part.pieces, seen))
            for found in in_order(partial(self._in_block, part.place), blocks, self._threads):
                seen.join(found)
        if part.arrays is not None:
            for array in part.arrays:
                seen.take_numbers(array)
                for texts in plain_texts(array):
                    seen.take_values(texts)
                    self._take_text(_lines(texts), seen, 0)
                    for value in _packed_values(texts):
                        self._take_file(value, seen, 0, missed=_is_sure(value))
        if part.texts is not None:
            self._take_texts(part.texts, seen)
        self.asked += seen.asked
        return seen.trace()

    def missed(self) -> Iterator[tuple[str, str]]:
        """Yield the places and reasons, once for all values of a column with a reason."""
        for (place, reason), count in self.unread.items():
            yield place, f"{reason}, in {count:,} values" if count > 1 else reason

    def _take_texts(self, texts: Iterable[bytes], seen: _Seen) -> None:
        """Add the texts that have a word, and the possible digests of the other texts."""
        unread: dict[bytes, list[str]] = {}
        traces = _traces_of(texts, self._index, unread)
        reasons = sorted({reason for some in unread.values() for reason in some})
        self.unread |= {(seen.place, reason): 0 for reason in reasons}
        sure, known = list[bytes](), set[int]()
        # Short texts first: a word in a few letters says more than the same word in a long text.
        for text, part in sorted(traces.items(), key=lambda it: (len(it[0]), it[0])):
            entries = set(part.entries.tolist())
            if entries <= known:
                seen.take_unsure(text, part.digests)
            else:
                sure.append(text)
                known |= entries
        for text in _blocks(_as_utf8(iter([b"\n".join(sure)]), seen)):
            self._take_text(text, seen, 0)

    def _in_block(self, place: str, block: bytes) -> _Seen:
        seen = _Seen(self._index, place)
        self._take_text(block, seen, 0)
        return seen

    def _room(self) -> Room:
        if not hasattr(self._own, "room"):
            self._own.room = Room(_STEP)
        return cast("Room", self._own.room)

    def _take_text(
        self,
        text: bytes,
        seen: _Seen,
        depth: int,
        known: Sequence[bytes] = (),
        *,
        is_own: bool = True,
    ) -> None:
        """Add the words of a text, and what is encoded in it.

        ``known`` has what runs of the texts around it hold. Without ``is_own`` some escapes in
        bytes were decoded: then what is not recognized are other bytes of the same file.
        """
        for step, found in self._index.found_in(text, self._room()):
            seen.take(step, found)
        if depth == _DEEPEST_ENCODING:
            return
        runs = list(in_runs(text, seen.take_digest))
        for inner in runs:
            # Decoding an escape leaves the lines around it, which may be a part of a run.
            if not (_is_unknown(inner) and any(inner[:_COMPARED] in it for it in known)):
                self._take_inner(inner, seen, depth + 1, is_own=True)
        is_own = is_own and is_utf8(text)
        known = [*known, *filter(_is_unknown, runs)]
        for inner in decoded(text, seen.take_digest):
            is_same = not is_own and text.startswith(inner[:4])
            self._take_inner(inner, seen, depth + 1, known, is_own=is_own, is_same=is_same)

    def _take_inner(
        self,
        inner: bytes,
        seen: _Seen,
        depth: int,
        known: Sequence[bytes] = (),
        *,
        is_own: bool,
        is_same: bool = False,
    ) -> None:
        if inner == b"":
            return
        self._take_text(inner, seen, depth, known, is_own=is_own)
        is_unknown = is_own and _is_unknown(inner)
        if (is_unknown or is_content(inner)) and depth < _DEEPEST_ENCODING:
            # Where escapes were decoded in a file it is the same file, which is damaged by that.
            is_sure = is_unknown or is_file(inner) or is_marked(inner, least=4)
            self._take_file(inner, seen, depth, missed=not is_same and is_sure)

    def _take_file(self, content: bytes, seen: _Seen, depth: int, *, missed: bool) -> None:
        """Search a file that is encoded in a text. Its words count for the part that has the text.

        With ``missed``, unread parts are listed. For files that were recognized by a short mark
        only, they are not, because other bytes have short marks by chance.
        """
        if self._damaged > _MOST_DAMAGED:
            self.unread[seen.place, _TOO_MANY_DAMAGED] = 0
            return
        opened = Opened.of(len(content), processes=self._processes)
        parts = parts_of(cast("BinaryIO", io.BytesIO(content)), opened, depth=depth)
        next(parts)
        for part in parts:
            if part.arrays is not None:
                for array in part.arrays:
                    for texts in plain_texts(array):
                        self._take_text(_lines(texts), seen, depth)
                        for value in _packed_values(texts):
                            self._take_file(value, seen, depth + 1, missed=_is_sure(value))
            for piece in part.pieces or ():
                self._take_text(piece, seen, depth)
        self._damaged += bool(opened.unread)
        # What lies that deep was opened, and not recognized by chance.
        reasons = [it for _, it in opened.unread if missed or it in (TOO_DEEP, TOO_MANY)]
        for key in {(seen.place, reason) for reason in reasons}:
            # A column's values are no encoded texts.
            self.unread[key] = self.unread.get(key, 0) + (depth == 0)


def _packed_values(texts: pa.Array) -> Iterator[bytes]:
    """Yield values that begin like packed data or a file, and long values that are not UTF-8."""
    offsets, data = binary_parts(texts)
    sizes = np.diff(offsets)
    is_packed = sizes >= _SHORTEST_PACKED
    starts = offsets[:-1][is_packed]
    first = data[starts].astype(np.uint16) << 8 | data[starts + 1]
    is_packed[is_packed] = np.isin(first, _FIRST_TWO)
    for i in np.flatnonzero(is_packed | (sizes > LONGEST_KEY)).tolist():
        value = data[offsets[i] : offsets[i + 1]].tobytes()
        if is_marked(value[:16]) or _is_unknown(value):
            yield value


def _is_unknown(content: bytes) -> bool:
    """Return whether bytes are not UTF-8, and longer than ``LONGEST_KEY``."""
    return len(content) > LONGEST_KEY and not is_utf8(content)


def _is_sure(value: bytes) -> bool:
    """Return whether a value that cannot be opened is listed."""
    return is_marked(value, least=4) or _is_unknown(value)


def _lines(texts: pa.Array) -> bytes:
    """Join texts into one text, one line each."""
    if len(texts) == 0:
        return b""
    ends = pa.scalar(b"\n", pa.large_binary())
    _, data = binary_parts(
        pc.binary_join_element_wise(texts, ends, pa.scalar(b"", pa.large_binary()))
    )
    return data.tobytes()


def _as_utf8(pieces: Iterator[bytes], seen: _Seen) -> Iterator[bytes]:
    """Convert a text with a mark of UTF-16 or UTF-32 to UTF-8. Yield other texts unchanged."""
    import codecs

    first = next(pieces, b"")
    name = byte_order(first[:4])
    decode = None if name is None else codecs.getincrementaldecoder(name)("replace")
    for piece in (it for some in ([first], pieces) for it in some):
        seen.size += len(piece)
        yield piece if decode is None else decode.decode(piece).encode("utf-8", "replace")


def _blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a text in blocks that overlap, so that each word is whole in one of them."""
    kept, piece = b"", next(pieces, b"")
    while piece:
        text, piece = kept + piece, next(pieces, b"")
        if not piece:
            yield text
            return
        # Cut at a line end, because what is encoded in another way may be long.
        cut = text.rfind(b"\n", max(0, len(text) - _LONGEST_LINE)) + 1 or len(text)
        yield text[:cut]
        kept = text[max(0, cut - 2 * LONGEST) :] if cut < len(text) or cut > 2 * LONGEST else b""


class _Seen:
    """The hits, digests and numbers that were seen in one part."""

    def __init__(self, index: WordIndex, place: str) -> None:
        self._index = index
        self._trace = PartTrace(place=place)
        self.place = place
        self._entries = DistinctNumbers(np.intp)
        self._values: DistinctNumbers | None = None
        self.size = self.asked = 0

    def join(self, other: _Seen) -> None:
        """Add what was seen in a block of the same part."""
        self.asked += other.asked
        self._entries.add(other._entries.found())
        for owner, words in other._trace.words.items():
            kept = self._trace.words.setdefault(owner, {})
            kept |= dict(islice(words.items(), _MOST_KEPT - len(kept)))
        left = _MOST_DIGESTS - len(self._trace.digests)
        self._trace.digests |= dict(islice(other._trace.digests.items(), left))

    def take(self, text: NDArray[np.uint8], found: Found) -> None:
        """Add the hits in a text."""
        self.asked += found.asked
        if not len(found.hits):
            return
        hashes = np.ascontiguousarray(found.hits[:, 0]).view(np.uint64)
        for owner, at, entries in self._index.matches(hashes):
            own = _one_at_each_place(found.hits[at], self._index.are_values(entries), text)
            self._entries.add(distinct(entries[own]))
            self._keep(owner, text, found, at[own])

    def _keep(
        self, owner: int, text: NDArray[np.uint8], found: Found, at: NDArray[np.intp]
    ) -> None:
        kept = self._trace.words.setdefault(owner, {})
        for row in found.hits[at[: 4 * _MOST_KEPT]].tolist() if len(kept) < _MOST_KEPT else ():
            hashed, start, length, place = row
            if hashed not in kept and len(kept) < _MOST_KEPT:
                folded = first_of_both(found.folded[start : start + length].tobytes())
                kept[hashed] = Word(folded, spelling(text, place, length))

    def take_digest(self, digest: bytes) -> None:
        """Add a possible digest of a value."""
        if len(self._trace.digests) < _MOST_DIGESTS:
            self._trace.digests[digest] = None

    def take_unsure(self, text: bytes, digests: Iterable[bytes]) -> None:
        """Add a text that counts only if one of its possible digests is the digest of a value."""
        for digest in digests:
            self.take_digest(digest)
        self._trace.unsure.append((len(text), frozenset(digests)))

    def take_values(self, texts: pa.Array) -> None:
        """Count the distinct values of a column, and add the values that may be digests."""
        offsets, data = binary_parts(texts)
        _, _, hashes, _ = fold_values(offsets, data)
        self._values = self._values or DistinctNumbers(np.uint64, _MOST_COUNTED)
        self._values.add(hashes)
        sizes = np.diff(offsets)
        for i in np.flatnonzero(np.isin(sizes, list(_SIZES)))[:_MOST_DIGESTS].tolist():
            value = data[offsets[i] : offsets[i + 1]].tobytes()
            if not value.isascii():
                self.take_digest(value)

    def take_numbers(self, array: pa.Array) -> None:
        """Add numbers that may be hashes of values."""
        if pa.types.is_int64(array.type) or pa.types.is_uint64(array.type):
            numbers = array.drop_null().to_numpy(zero_copy_only=False).view(np.int64)
            large = distinct(numbers[np.abs(numbers) >= _LEAST_HASH])[:_MOST_DIGESTS]
            for number in large.tolist():
                self.take_digest(number.to_bytes(XXH64_SIZE, "little", signed=True))
        elif pa.types.is_fixed_size_binary(array.type) and array.type.byte_width in _SIZES:
            for value in array.drop_null()[:_MOST_DIGESTS].to_pylist():
                self.take_digest(value)

    def trace(self) -> PartTrace:
        """Return the trace of the part."""
        trace = self._trace
        trace.size = self.size
        trace.entries = self._entries.found()
        if self._values is not None:
            trace.distinct = len(self._values.found())
            trace.size = trace.size or 1 << 62
        return trace


def _one_at_each_place(
    hits: NDArray[np.int64], are_values: NDArray[np.bool_], text: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Return a mask of the hits of one column that count: only one of overlapping hits counts.

    ``12345678901.0`` contains a number as written, and is the same number as a decimal. The end of
    one date and the start of the date in the next line may look like a third date. So a word inside
    one cell or line is preferred, then the longest word, then a whole value.
    """
    starts, ends = hits[:, 1], hits[:, 1] + hits[:, 2]
    order = np.argsort(starts, kind="stable")
    is_clash = starts[order][1:] < np.maximum.accumulate(ends[order])[:-1]
    counts = np.ones(len(hits), np.bool_)
    clashing = np.sort(order[np.append(is_clash, False) | np.append(False, is_clash)])
    if len(clashing):
        counts[clashing] = False
        ranks = ~are_values[clashing], -hits[clashing, 2], _are_across(hits[clashing], text)
        taken = [(-1, 0), (len(text), len(text))]
        for i in clashing[np.lexsort(ranks)].tolist():
            at = bisect(taken, (starts[i], 0))
            if taken[at - 1][1] <= starts[i] and ends[i] <= taken[at][0]:
                taken.insert(at, (starts[i], ends[i]))
                counts[i] = True
    return counts


def _are_across(hits: NDArray[np.int64], text: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return a mask of the hits that cross a cell or a line, by the marks between their letters."""
    kept = np.cumsum(_IS_KEPT[text])
    ends = np.cumsum(_ENDS_CELL[text])
    last = np.searchsorted(kept, kept[hits[:, 3]] + hits[:, 2] - 1)
    found: NDArray[np.bool_] = ends[np.minimum(last, len(text) - 1)] > ends[hits[:, 3]]
    return found


#: By byte: whether it is a letter or digit, or of one outside of ASCII, and what ends cells.
_IS_KEPT: Final = np.array([it >= 0x80 or chr(it).isalnum() for it in range(256)])
_ENDS_CELL: Final = np.isin(np.arange(256), list(b"\r\n\t,;|\"'<>"))


def confirm(traces: Sequence[FileTrace], index: WordIndex) -> None:
    """Compare the kept words and digests of all files with the values of their columns.

    If filters rule out most row groups of a column, only the other row groups are read. Digests,
    and words in another notation than the value, need all values.
    """
    parts = [part for trace in traces for part in trace.parts]
    wanted_digests = {digest for part in parts for digest in part.digests}
    with_words: dict[int, list[PartTrace]] = {}
    for part in parts:
        for owner in part.words:
            with_words.setdefault(owner, []).append(part)
    found: set[bytes] = set()
    # A digest may be one of a value of any column.
    for owner in range(len(index.subjects)) if wanted_digests else sorted(with_words):
        subject, left = index.subjects[owner], with_words.get(owner, [])
        if not wanted_digests:
            left = _looked_up(left, owner, subject)
        wanted = {h for part in left for h in part.words[owner]}
        if wanted or wanted_digests:
            links = _Links(_notations(left, owner, index))
            words, equal = _compared(subject.texts(), wanted, wanted_digests, links)
            for part in left:
                _count_values_once(part, owner, links, index)
                _confirm_words(part, owner, words, _MOST_KEPT)
            for part in parts if equal else ():
                count = len(part.digests.keys() & equal)
                if count:
                    part.confirmed_digests[owner] = count
            found |= equal
    for part in parts:
        part.size += sum(size for size, digests in part.unsure if not found.isdisjoint(digests))


def _looked_up(parts: list[PartTrace], owner: int, subject: SearchedColumn) -> list[PartTrace]:
    """Read the row groups whose filters may have some kept words, and compare the words with them.

    Return the parts that have unconfirmed words.
    """
    for most in _FEWER if subject.lookup is not None and parts else ():
        some = {word.written: None for part in parts for word in _first(part, owner, most)}
        arrays = None if subject.lookup is None else subject.lookup(list(some))
        if arrays is not None:
            wanted = {h for part in parts for h in part.words[owner]}
            texts = (texts for array in arrays for texts in plain_texts(array))
            found = (Texts(it, _NONE, is_value=True) for it in texts)
            words, _ = _compared(found, wanted, set(), _Links(_NO_HASHES))
            return [part for part in parts if not _confirm_words(part, owner, words, most)]
    return parts


#: The words of a part that are looked up: the fewer there are, the more row groups are ruled out.
_FEWER: Final = (1_000, 100, 16)


def _first(part: PartTrace, owner: int, most: int) -> Iterator[Word]:
    return islice(part.words[owner].values(), most)


def _confirm_words(part: PartTrace, owner: int, words: set[bytes], most: int) -> bool:
    """Compare the first kept words with ``words``. Return whether ``words`` has all of them."""
    kept = list(_first(part, owner, most))
    equal = sum(word.folded in words for word in kept)
    part.confirmed[owner] = len(kept), equal
    return equal == len(kept)


class _Links:
    """Maps hashes of words in another notation to the hashes of the values that the words mean."""

    def __init__(self, notations: Entries) -> None:
        self._wanted = WantedHashes(notations) if len(notations) else None
        self._pairs: list[tuple[Entries, Entries]] = []

    def wanted(self, given: Texts, hashes: Entries) -> tuple[Entries, Entries]:
        """Return the hashes of wanted texts in another notation, and of the values they mean.

        ``hashes`` are the hashes of all these texts.
        """
        if self._wanted is None or given.of is None:
            return _NO_HASHES, _NO_HASHES
        at = self._wanted.places(hashes)
        values = fold_values(*binary_parts(given.of))[2] if len(at) else hashes
        return hashes[at], values[at]

    def take(self, pair: tuple[Entries, Entries]) -> None:
        """Add what :meth:`wanted` returned. Of two values of a word, the last one counts."""
        self._pairs.append(pair)

    def values_of(self, hashes: Entries, present: Entries) -> Entries:
        """Return the hash of the value that each word means.

        A word in no other notation means itself. ``05.06.1990`` may be two dates: a date whose hash
        is in ``present`` is preferred.
        """
        notations, values = map(np.concatenate, zip((hashes, hashes), *self._pairs, strict=True))
        order = np.lexsort((np.isin(values, present), notations))
        last = np.searchsorted(notations[order], hashes, side="right") - 1
        found: Entries = values[order][last]
        return found


def _notations(parts: Iterable[PartTrace], owner: int, index: WordIndex) -> Entries:
    """Return the hashes of the parts' words that are other notations of a column's values."""
    found = [_own(part, owner, index) for part in parts]
    entries = distinct(np.concatenate([*found, np.empty(0, np.intp)]))
    return distinct(index.entries[entries[~index.are_values(entries)]] & MASK)


def _own(part: PartTrace, owner: int, index: WordIndex) -> NDArray[np.intp]:
    own: NDArray[np.intp] = part.entries[index.owners[part.entries] == owner]
    return own


def _kinds(entries: NDArray[np.intp], index: WordIndex) -> NDArray[np.int64]:
    return (index.entries[entries] & np.uint64(REST)).astype(np.int64)


def _count_values_once(part: PartTrace, owner: int, links: _Links, index: WordIndex) -> None:
    """Keep only one word of each value that a part has in several notations.

    The most distinctive word of a value is kept. A word that is less distinctive than the value,
    such as a few digits of it or a day of the epoch, does not count as the value.
    """
    own = _own(part, owner, index)
    own = own[np.argsort(-_kinds(own, index), kind="stable")]
    is_value = index.are_values(own)
    hashes = index.entries[own] & MASK
    present = hashes[is_value]
    values = np.where(is_value, hashes, links.values_of(hashes, present))
    # The value itself, if it is long enough to be searched for: parts have it in common.
    for other, at, entries in index.matches(values):
        if other == owner:
            is_less = _kinds(own[at], index) < _kinds(entries, index)
            own[at] = np.where(is_less, own[at], entries)
    _, first = np.unique(values, return_index=True)
    others = part.entries[index.owners[part.entries] != owner]
    part.entries = distinct(np.concatenate([others, own[first]]))
    words = part.words[owner]
    kept = links.values_of(np.array(list(words), np.int64).view(np.uint64), present)
    _, first = np.unique(kept, return_index=True)
    wanted = {list(words)[place] for place in first.tolist()}
    part.words[owner] = {hashed: word for hashed, word in words.items() if hashed in wanted}


def _compared(
    texts: Iterable[Texts], wanted: set[int], wanted_digests: set[bytes], links: _Links
) -> tuple[set[bytes], set[bytes]]:
    """Return the words of values whose hash is wanted, and the wanted digests that values have.

    ``links`` gets the other notations of values.
    """
    hashes = WantedHashes(distinct(np.array(list(wanted), np.int64).view(np.uint64)))
    words: set[bytes] = set()
    equal: set[bytes] = set()
    sizes = {len(digest) for digest in wanted_digests}

    def words_of(given: Texts) -> tuple[Texts, list[bytes], tuple[Entries, Entries]]:
        offsets, data = binary_parts(given.texts)
        folded, ends, found, _ = fold_values(offsets, data)
        at = hashes.places(found)
        spans = zip(np.where(at > 0, ends[at - 1], 0).tolist(), ends[at].tolist(), strict=True)
        own = [folded[start:end].tobytes() for start, end in spans]
        return given, own, links.wanted(given, found)

    for given, found, pair in in_order(words_of, texts, FOLDERS):
        words.update(found)
        links.take(pair)
        # Dates have forty notations, and who takes a digest of one takes that of the value.
        if sizes and (given.is_value or not len(given.moments)):
            values = (it for it in given.texts.to_pylist() if len(it) >= _SHORTEST_DIGESTED)
            equal |= wanted_digests.intersection(digests(values, sizes))
    return words, equal


#: Shorter values have so few digests that anyone can list them; they are common words.
_SHORTEST_DIGESTED: Final = 5
_NONE: Final = pa.array([], pa.int64())
_NO_HASHES: Final = np.empty(0, np.uint64)


def counts_of(part: PartTrace, index: WordIndex) -> Iterator[tuple[int, dict[int, int], int]]:
    """Yield for each column its confirmed words, counted by kind, and how many words passed."""
    for owner, words in index.kinds_of(part.entries):
        kinds, counts = np.unique(words, return_counts=True)
        compared, equal = part.confirmed.get(owner, (0, 0))
        share = equal / compared if compared else 0.0
        by_kind = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
        yield owner, {kind: int(n * share) for kind, n in by_kind.items()}, len(words)
    for owner, count in part.confirmed_digests.items():
        yield owner, {DISTINCTIVE: count}, count
