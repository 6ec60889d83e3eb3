"""Decode the strings of a chunk whose pages were read already, to know their size in memory.

pyarrow would read them, and decompress the dictionary, once more.  What is not as expected here is
left to it: the answer is ``None``, never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.kernels import extension
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS
from secure_bloom.parquet.footer.opened import Chunk
from secure_bloom.parquet.pages import Page, has_dictionary_offset
from secure_bloom.parquet.plain_pages import encoded_values, plain_entries
from secure_bloom.parquet.structures.metadata import Encoding, Type
from secure_bloom.parquet.value_arrays import Binary

#: Types with offsets of 32 bits.
_TYPES = (pa.string(), pa.binary())
_LARGEST = 2**31 - 1
#: A larger chunk is not read as a whole: its dictionary is a small part of it.
_LARGEST_CHUNK = 32 * 1024 * 1024

#: The bytes of PLAIN values, and the place of each value in them.
Placed = tuple[NDArray[np.uint8], NDArray[np.uint32]]


def may_be_decoded_here(chunk: Chunk) -> bool:
    """Return whether the footer allows it, and the C extension is there to do it."""
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
        """The bytes that are held while values are decoded, beside those and the dictionary."""
        texts = sum(page.header.uncompressed_page_size for page in self.pages)
        return self.chunk.meta_data.total_compressed_size + texts

    def decoded(self, type_: pa.DataType) -> pa.Array | None:
        """Return all values; None if the chunk has a null, a value elsewhere, or damage."""
        if type_ not in _TYPES:
            return None
        places = np.empty(self.chunk.num_rows, np.uint32)
        found, seen = [], 0
        for page in self.pages:
            if not page.is_dictionary:
                of_page = places[seen : seen + page.num_values]
                data = self._enter_places(page, of_page)
                if data is None:
                    return None
                found.append((data, of_page))
                seen += page.num_values
        return _array(found, len(places), type_)

    def _enter_places(self, page: Page, places: NDArray[np.uint32]) -> NDArray[np.uint8] | None:
        """Enter where each value of a data page is in the bytes that are the answer."""
        leaf, codec = self.chunk.leaf, self.chunk.meta_data.codec
        # pyarrow takes a page without values for the end of the chunk.
        if page.num_values == 0:
            return None
        if page.encoding is Encoding.PLAIN:
            plain = plain_entries(leaf, codec, page)
            if not isinstance(plain, Binary) or len(plain) != page.num_values:
                return None
            places[:] = plain.offsets[:-1]
            return plain.data
        if page.encoding not in DICTIONARY_ENCODINGS:
            return None
        values = encoded_values(leaf, codec, page)
        if values is None or values.count != page.num_values:
            return None
        entries, look_up = self.entries, extension.native.look_up
        # 0 is no damage.
        return None if look_up(values.content, entries.offsets, places) else entries.data


def _array(parts: Sequence[Placed], count: int, type_: pa.DataType) -> pa.Array | None:
    """Return the values in these places, one after the other; None if they are too many bytes."""
    native = extension.native
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = 0
    seen = size = 0
    for data, places in parts:
        ends = offsets[seen + 1 : seen + 1 + len(places)]
        size = native.enter_ends(data, places, size, ends)
        seen += len(places)
    # Ends of more bytes have no room in 32 bits.
    if size > _LARGEST:
        return None
    buffer = pa.allocate_buffer(size)
    into, end = np.frombuffer(buffer, np.uint8), 0
    for data, places in parts:
        end = native.copy_values(data, places, end, into)
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(offsets), buffer])
