"""Take a few values out of the pages of a flat column, as they are stored.

A page is decompressed, and only the values of the wanted rows are copied:

    PLAIN, BYTE_STREAM_SPLIT      values are found by their positions
    RLE_DICTIONARY                indices are unpacked, then the wanted entries are copied
    DELTA_*                       lengths and sums are decoded, then the wanted values are copied

For an unusual or damaged page these functions return None, and never guess: pyarrow then decodes
the page or reports its fault.  The whole page is checked, not only the copied values.  Parquet,
Encodings.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.loops import (
    DAMAGED,
    Sought,
    byte_array_offsets,
    delta_numbers,
    find_values,
    hash_rows,
    hash_spans,
    join_prefixes,
    pick_indices,
    pick_spans,
    unpack,
)
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.plain_pages import is_plain, page_body
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, Type
from secure_bloom.parquet.value_arrays import Binary, Entries, fixed_type

Positions = NDArray[np.int64]
Bytes = NDArray[np.uint8]

#: A page with more values is left to pyarrow: arrays are made for all of them.
_MOST_VALUES = 1 << 22
#: Indices of a dictionary have at most this many bits.
_WIDEST_INDEX = 32
_LENGTH_SIZE = 4
_DICTIONARY = (Encoding.RLE_DICTIONARY, Encoding.PLAIN_DICTIONARY)


@dataclass(slots=True, kw_only=True)
class StoredDictionary:
    """The entries of a chunk's dictionary page."""

    leaf: Leaf
    content: Bytes = field(repr=False)
    count: int

    @classmethod
    def of(cls, leaf: Leaf, codec: CompressionCodec, page: Page) -> StoredDictionary | None:
        """Return the dictionary, or None if pyarrow must decode the chunk."""
        if not is_plain(page) or leaf.type is Type.BOOLEAN:
            return None
        body = page_body(leaf, codec, page)
        return None if body is None else cls(leaf=leaf, content=body[1], count=body[2])

    def find(self, sought: Sought) -> FoundEntries | None:
        """Return the entries that are sought, or None if they are too many."""
        found = _found(self.content, self.count, self.leaf.width or 0, sought)
        return None if found is None else FoundEntries(positions=found, count=self.count)

    def pick(self, indices: Positions) -> Entries | None:
        """Return some of the entries, or None if the dictionary is damaged."""
        if len(indices) == 1:
            return _plain(self, indices, None)
        ranks, places = np.unique(indices, return_inverse=True)
        found = _plain(self, ranks, None)
        return None if found is None else _picked(found, places)


@dataclass(slots=True, kw_only=True)
class Taken:
    """Values of some rows. ``entries`` has only the values of rows that are not null.

    ``is_valid`` is a mask of the rows that are not null, or None if no row is null.
    """

    entries: Entries = field(repr=False)
    is_valid: NDArray[np.bool_] | None = field(repr=False)


@dataclass(slots=True, kw_only=True)
class PageValues:
    """A data page that is decompressed, so that its values can be searched and taken.

    ``count`` is how many of its ``rows`` are not null. A row is not null if it has the column's
    highest definition level.
    """

    leaf: Leaf
    encoding: Encoding
    rows: int
    levels: Bytes = field(repr=False)
    content: Bytes = field(repr=False)
    count: int

    @classmethod
    def of(cls, leaf: Leaf, codec: CompressionCodec, page: Page) -> PageValues | None:
        """Return the decompressed page, or None if pyarrow must decode it."""
        encoding, rows = page.encoding, page.num_values
        if encoding not in _DECODERS or not 0 < rows <= _MOST_VALUES:
            return None
        body = page_body(leaf, codec, page)
        if body is None:
            return None
        levels, content, count = body
        return cls(
            leaf=leaf, encoding=encoding, rows=rows, levels=levels, content=content, count=count
        )

    def take(self, rows: Positions, dictionary: StoredDictionary | None) -> Taken | None:
        """Return the values of ``rows``, ascending positions in the page.

        Return None if pyarrow must decode the page.
        """
        ranks, is_valid = rows, None
        if self.count != self.rows:
            defined = self._defined()
            if defined is None:
                return None
            is_valid = defined[rows]
            ranks = (np.cumsum(defined)[rows] - 1)[is_valid]
        entries = _DECODERS[self.encoding](self, ranks, dictionary)
        return None if entries is None else Taken(entries=entries, is_valid=is_valid)

    def find(self, sought: Sought, dictionary: FoundEntries | None) -> Positions | None:
        """Return the rows that have one of the values that are sought.

        Return None if there are too many, or if pyarrow must decode the page.
        """
        if self.encoding is Encoding.PLAIN:
            found = _found(self.content, self.count, self.leaf.width or 0, sought)
        elif self.encoding in _DICTIONARY and dictionary is not None:
            indices = _indices(self.content, self.count, dictionary.count)
            found = None if indices is None else dictionary.among(indices)
        else:
            return None
        if found is None or self.count == self.rows:
            return found
        defined = self._defined()
        return None if defined is None else np.flatnonzero(defined)[found]

    def _defined(self) -> NDArray[np.bool_] | None:
        """Return a mask of the rows that are not null."""
        levels, highest = np.empty(self.rows, np.uint32), self.leaf.max_definition_level
        width = highest.bit_length()
        if unpack(self.levels, width, 1 << width, levels) == DAMAGED:
            return None
        return np.asarray(levels == highest)


@dataclass(slots=True, kw_only=True)
class FoundEntries:
    """The positions of some of the ``count`` entries of a dictionary."""

    positions: Positions
    count: int

    def among(self, indices: NDArray[np.uint32]) -> Positions | None:
        """Return the positions of the ``indices`` that refer to these entries.

        Return None if too many do.
        """
        if len(self.positions) == 1:
            found = np.flatnonzero(indices == np.uint32(self.positions[0]))
        else:
            marks = np.zeros(self.count, np.bool_)
            marks[self.positions] = True
            found = np.flatnonzero(marks[indices])
        return found if len(found) <= MOST_FOUND else None


#: More rows with the values than this are too many to be taken one by one.
MOST_FOUND = 1024


def _found(content: Bytes, count: int, width: int, sought: Sought) -> Positions | None:
    found = np.empty(MOST_FOUND, np.int64)
    number = find_values(content, count, width, sought, found)
    return found[:number] if 0 <= number <= MOST_FOUND else None


def _indices(content: Bytes, count: int, entries: int) -> NDArray[np.uint32] | None:
    """Return the indices of a page: a byte with their width, then runs."""
    if not len(content) or content[0] > _WIDEST_INDEX:
        return None
    indices = np.empty(count, np.uint32)
    return None if unpack(content[1:], int(content[0]), entries, indices) == DAMAGED else indices


#: The values of a page as they are encoded: ``count`` of ``leaf`` in ``content``, without nulls.
_Encoded = PageValues | StoredDictionary


def digests_of(pages: Sequence[_Encoded]) -> NDArray[np.uint32] | None:
    """Return the lower half of the hash of each value in PLAIN pages and dictionaries, ascending.

    Return None if the values are not all of a page.
    """
    found = list[NDArray[np.uint32]]()
    for page in pages:
        hashes, width = np.empty(page.count, np.uint64), page.leaf.width
        if width is None:
            offsets = np.empty(page.count + 1, np.int64)
            if byte_array_offsets(page.content, offsets) != len(page.content):
                return None
            hash_spans(offsets, _LENGTH_SIZE, page.content, hashes)
        elif len(page.content) != page.count * width:
            return None
        else:
            hash_rows(page.content.reshape(page.count, width), hashes)
        found.append(hashes.astype(np.uint32))
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.uint32)


def _plain(page: _Encoded, ranks: Positions, _: object) -> Entries | None:
    leaf, content = page.leaf, page.content
    if leaf.type is Type.BYTE_ARRAY:
        spans = np.empty(2 * len(ranks), np.int64)
        if pick_spans(content, page.count, ranks, spans) == DAMAGED:
            return None
        return _copied(content, spans[::2], spans[1::2])
    if leaf.type is Type.BOOLEAN:
        if len(content) != (page.count + 7) // 8:
            return None
        return np.unpackbits(content, count=page.count, bitorder="little")[ranks]
    dtype = fixed_type(leaf)
    if len(content) != page.count * dtype.itemsize:
        return None
    return np.frombuffer(content, dtype=dtype, count=page.count)[ranks]


def _run_length(page: PageValues, ranks: Positions, _: object) -> Entries | None:
    """Return values of BOOLEANs in runs: a length of four bytes, then runs of one bit."""
    content = page.content
    size = int.from_bytes(content[:_LENGTH_SIZE].tobytes(), "little")
    if page.leaf.type is not Type.BOOLEAN or len(content) != _LENGTH_SIZE + size:
        return None
    values = np.empty(page.count, np.uint32)
    if unpack(content[_LENGTH_SIZE:], 1, 2, values) == DAMAGED:
        return None
    return values.astype(np.uint8)[ranks]


def _of_dictionary(
    page: PageValues, ranks: Positions, dictionary: StoredDictionary | None
) -> Entries | None:
    if dictionary is None:
        return None
    content, entries = page.content, dictionary.count
    if not len(content) or content[0] > _WIDEST_INDEX:
        return None
    picked, width = np.empty(len(ranks), np.int64), int(content[0])
    if pick_indices(content[1:], width, entries, page.count, ranks, picked) == DAMAGED:
        return None
    return dictionary.pick(picked)


def _split(page: PageValues, ranks: Positions, _: object) -> Entries | None:
    dtype = fixed_type(page.leaf)
    width = dtype.itemsize
    if page.leaf.type in (Type.BYTE_ARRAY, Type.BOOLEAN, Type.INT96):
        return None
    if len(page.content) != page.count * width:
        return None
    streams = page.content.reshape(width, page.count)
    return np.ascontiguousarray(streams[:, ranks].T).view(dtype).reshape(len(ranks))


#: Physical type -> bits of its numbers.
_BITS = {Type.INT32: 32, Type.INT64: 64}


def _deltas(page: PageValues, ranks: Positions, _: object) -> Entries | None:
    bits = _BITS.get(page.leaf.type)
    if bits is None:
        return None
    numbers = np.empty(page.count, np.int64)
    if delta_numbers(page.content, 0, bits, numbers) != len(page.content):
        return None
    # Sums of 32 bits are those of 64 bits without the upper half.
    return numbers[ranks].astype(fixed_type(page.leaf), casting="unsafe")


def _delta_lengths(page: PageValues, ranks: Positions, _: object) -> Entries | None:
    if page.leaf.type is not Type.BYTE_ARRAY:
        return None
    found = _spans(page.content, 0, page.count)
    return None if found is None else _picked(Binary(offsets=found[0], data=found[1]), ranks)


def _spans(content: Bytes, start: int, count: int) -> tuple[Positions, Bytes] | None:
    """Return the offsets of byte arrays whose lengths begin at ``start``, and all their bytes."""
    lengths = np.empty(count, np.int64)
    end = delta_numbers(content, start, _BITS[Type.INT32], lengths)
    if end == DAMAGED or (count and (lengths.min() < 0 or lengths.max() > len(content))):
        return None
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return (offsets, content[end:]) if offsets[-1] == len(content) - end else None


def _delta_byte_arrays(page: PageValues, ranks: Positions, _: object) -> Entries | None:
    if page.leaf.type not in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY):
        return None
    content, count = page.content, page.count
    prefixes = np.empty(count, np.int64)
    middle = delta_numbers(content, 0, _BITS[Type.INT32], prefixes)
    found = None if middle == DAMAGED else _spans(content, middle, count)
    if found is None or (count and (prefixes.min() < 0 or prefixes.max() > len(content))):
        return None
    offsets, suffixes = found
    lengths = prefixes + np.diff(offsets)
    # A prefix is a part of the value before it.
    if (prefixes[1:] > lengths[:-1]).any() or (count and prefixes[0] != 0):
        return None
    width = page.leaf.width
    if width is not None and (lengths != width).any():
        return None
    size, ends = int(lengths[ranks].sum()), np.empty(len(ranks), np.int64)
    if size > _MOST_BYTES:
        return None
    into = np.empty(size, np.uint8)
    if join_prefixes(prefixes, offsets, suffixes, ranks, ends, into) != size:
        return None
    if width is not None:
        return into.view(fixed_type(page.leaf))
    return Binary(offsets=np.concatenate([[0], ends]), data=into)


#: Values of more bytes than these together are left to pyarrow, which decodes them in parts.
_MOST_BYTES = 64 * 1024 * 1024


def _picked(entries: Entries, ranks: Positions) -> Entries | None:
    """Return some of the entries, copied, or None if they are too large."""
    if not isinstance(entries, Binary):
        return entries[ranks]
    return _copied(entries.data, entries.offsets[ranks], entries.offsets[ranks + 1])


def _copied(content: Bytes, starts: Positions, ends: Positions) -> Binary | None:
    """Return the texts between starts and ends, one after the other, or None if they are large."""
    if len(starts) == 1:
        size = int(ends[0] - starts[0])
        if size > _MOST_BYTES:
            return None
        # Copied, so that the value does not keep all of its page in memory.
        text = content[starts[0] : ends[0]].copy()
        return Binary(offsets=np.array([0, size], np.int64), data=text)
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        return None
    data = content.data
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    joined = b"".join([data[start:end] for start, end in spans])
    return Binary(offsets=offsets, data=np.frombuffer(joined, np.uint8))


#: Encoding -> the values at some ranks among those that are not null; None for damage.
_DECODERS: dict[
    Encoding, Callable[[PageValues, Positions, StoredDictionary | None], Entries | None]
] = {
    Encoding.PLAIN: _plain,
    Encoding.RLE: _run_length,
    Encoding.RLE_DICTIONARY: _of_dictionary,
    Encoding.PLAIN_DICTIONARY: _of_dictionary,
    Encoding.BYTE_STREAM_SPLIT: _split,
    Encoding.DELTA_BINARY_PACKED: _deltas,
    Encoding.DELTA_LENGTH_BYTE_ARRAY: _delta_lengths,
    Encoding.DELTA_BYTE_ARRAY: _delta_byte_arrays,
}


def joined(parts: Sequence[Taken]) -> Taken:
    """Return the values of consecutive pages together."""
    is_valid = None
    if any(part.is_valid is not None for part in parts):
        masks = [
            np.ones(len(part.entries), np.bool_) if part.is_valid is None else part.is_valid
            for part in parts
        ]
        is_valid = np.concatenate(masks)
    return Taken(entries=_joined([part.entries for part in parts]), is_valid=is_valid)


def _joined(parts: Sequence[Entries]) -> Entries:
    texts = [part for part in parts if isinstance(part, Binary)]
    if not texts:
        return np.concatenate([part for part in parts if not isinstance(part, Binary)])
    lengths = [np.diff(text.offsets) for text in texts]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    return Binary(offsets=offsets, data=np.concatenate([text.data for text in texts]))
