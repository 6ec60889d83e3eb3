"""Decode the strings of a chunk whose pages were already read, to measure their size.

pyarrow would read them, and decompress the dictionary, a second time.  Anything unexpected is left
to pyarrow: these functions return ``None`` and never guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.kernels import extension
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import Page, has_dictionary_offset
from secure_bloom.parquet.plain_pages import encoded_values, plain_entries
from secure_bloom.parquet.structures.metadata import Encoding, Type
from secure_bloom.parquet.value_arrays import Binary

#: Types with offsets of 32 bits.
_TYPES = (pa.string(), pa.binary())
_LARGEST = 2**31 - 1
#: A larger chunk is not read as a whole: its dictionary is a small part of it.
_LARGEST_CHUNK = 32 * 1024 * 1024

#: The values of a page: indices of a dictionary, or nothing for each entry once; the entries in
#: PLAIN encoding, where each starts, and how many values the page has.
_Part = tuple[NDArray[np.uint8], Binary, int]
_NOTHING: NDArray[np.uint8] = np.empty(0, np.uint8)


def may_be_decoded_here(chunk: Chunk) -> bool:
    """Return whether the footer and the C extension allow it."""
    meta_data, statistics = chunk.meta_data, chunk.meta_data.statistics
    return (
        chunk.leaf.type is Type.BYTE_ARRAY
        and has_dictionary_offset(chunk)
        and meta_data.num_values == chunk.num_rows
        and meta_data.total_compressed_size <= _LARGEST_CHUNK
        and not (statistics and statistics.null_count)
        and extension.native is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryStrings:
    """The strings of a chunk: its pages, with the entries of its dictionary."""

    chunk: Chunk
    pages: Sequence[Page] = field(repr=False)
    entries: Binary = field(repr=False)

    @property
    def held(self) -> int:
        """The bytes held while values are decoded, besides the values and the dictionary."""
        texts = sum(page.uncompressed_size for page in self.pages)
        return self.chunk.meta_data.total_compressed_size + texts

    def decoded(self, type_: pa.DataType) -> pa.Array | None:
        """Return all values.

        Return None for a chunk with nulls, values outside the dictionary, or damage.
        """
        if type_ not in _TYPES:
            return None
        parts = [self._part(page) for page in self.pages if not page.is_dictionary]
        if sum(page.num_values for page in self.pages if not page.is_dictionary) != (
            count := self.chunk.num_rows
        ):
            return None
        found = [part for part in parts if part is not None]
        return _array(found, count, type_) if len(found) == len(parts) else None

    def _part(self, page: Page) -> _Part | None:
        """Return the values of a data page, or None if pyarrow must decode it."""
        leaf, codec = self.chunk.leaf, self.chunk.meta_data.codec
        # pyarrow takes a page without values for the end of the chunk.
        if page.num_values == 0:
            return None
        if page.encoding is Encoding.PLAIN:
            plain = plain_entries(leaf, codec, page)
            if not isinstance(plain, Binary) or len(plain) != page.num_values:
                return None
            return _NOTHING, plain, page.num_values
        if page.encoding not in DICTIONARY_ENCODINGS:
            return None
        values = encoded_values(leaf, codec, page)
        # Without a byte for their width they are no indices.
        if values is None or values.count != page.num_values or not len(values.content):
            return None
        return values.content, self.entries, page.num_values


def _array(parts: Sequence[_Part], count: int, type_: pa.DataType) -> pa.Array | None:
    """Return the values of the pages, or None if they are damaged or too large."""
    # At first each value counts as long as the longest entry.
    size = sum(count * entries.longest for _, entries, count in parts)
    offsets = np.zeros(count + 1, np.int32)
    is_measured = size > _SPARE * sum(len(entries.data) for _, entries, _ in parts)
    if is_measured:
        size = _copied(parts, offsets, _NOTHING)
    # Ends of more bytes have no room in 32 bits.
    if not 0 <= size <= _LARGEST:
        return None
    buffer = pa.allocate_buffer(size)
    into = np.frombuffer(buffer, np.uint8) if size else _NOTHING
    if _copied(parts, offsets, into) < 0:
        return None
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(offsets), buffer])


#: Values are measured before they are copied if they may take more than this many times the bytes
#: of their entries.  Most texts of a column are about as long, and then one pass does both.
_SPARE = 2


def _copied(parts: Sequence[_Part], offsets: NDArray[np.int32], into: NDArray[np.uint8]) -> int:
    """Store where values end, and copy them unless ``into`` is empty.

    Returns the end of the last value, or a negative number if a page is damaged.
    """
    seen, end = 1, 0
    for indices, entries, count in parts:
        ends = offsets[seen : seen + count]
        bounds = np.require(entries.offsets, np.int64, ["C", "A"])
        end = extension.native.copy_entries(indices, entries.data, bounds, end, ends, into)
        if end < 0:
            break
        seen += count
    return int(end)
