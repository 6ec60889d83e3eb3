"""Compute, from their pages, an upper bound of the decoded size of column chunks.

In some encodings a few bytes expand to many: a run of a billion equal values, a dictionary with an
entry of a megabyte, codecs that turn kilobytes into gigabytes.

Strings whose pages were read for their size are decoded here: pyarrow would read the pages, and
decompress the dictionary, a second time.  Anything unexpected is left to pyarrow:
:class:`DictionaryStrings` returns ``None`` and never guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.errors import IntegrityError, SecureBloomError, located
from secure_bloom.kernels import extension
from secure_bloom.parquet.decoded_bounds import OFFSET_SIZE, harmless_size, measured, size_of_rows
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS, read_headers, read_rows
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import Page, chunk_extent, has_dictionary_offset, read_pages
from secure_bloom.parquet.plain_pages import encoded_values, plain_entries
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, Type
from secure_bloom.parquet.value_arrays import Binary
from secure_bloom.reading.table.coalesced_reads import read_pooled
from secure_bloom.running.memory_budget import MemoryBudgetError, refuse_beyond
from secure_bloom.storage import InputFile, is_object_uri

#: The most bytes that one compressed byte can become.  Brotli is missing: it has no useful bound.
_RATIOS = {
    CompressionCodec.UNCOMPRESSED: 1,
    CompressionCodec.SNAPPY: 22,
    CompressionCodec.LZ4: 256,
    CompressionCodec.LZ4_RAW: 256,
    CompressionCodec.GZIP: 1033,
    CompressionCodec.ZSTD: 40_000,
}
_LARGEST_PAGE = 2**31


class DecodedSize(NamedTuple):
    """An upper bound of the decoded size of values: ``most``, in bytes.

    ``strings`` are the decoded values, if all pages were read to find the size. Callers use them
    instead of decoding the pages again.
    """

    most: int
    strings: DictionaryStrings | None = None


def decoded_size(file: InputFile, chunk: Chunk) -> DecodedSize:
    """Return an upper bound of the decoded size of all values of the chunk, with its largest page.

    Raises MemoryBudgetError if a single page takes more than the budget, or the values of a list
    column, which cannot be decoded in parts.
    """
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        # Each page's header of an object is a request: there the footer's own numbers must do.
        size = _claimed(chunk) if is_object_uri(file.path) else _by_metadata(chunk)
        found = DecodedSize(size) if size <= harmless_size() else _by_pages(file, chunk, size)
        if chunk.leaf.is_repeated:
            refuse_beyond(found.most, "the column's lists")
        return found


def _claimed(chunk: Chunk) -> int:
    meta_data = chunk.meta_data
    values = max(meta_data.num_values, 0) * ((chunk.leaf.width or 0) + OFFSET_SIZE)
    return values + max(meta_data.total_uncompressed_size, 0)


def _by_metadata(chunk: Chunk) -> int:
    """Return an upper bound that holds whatever the pages contain."""
    meta_data = chunk.meta_data
    ratio = _RATIOS.get(meta_data.codec, _LARGEST_PAGE)
    content = min(max(meta_data.total_compressed_size, 1) * ratio, _LARGEST_PAGE)
    longest = chunk.leaf.width or content
    return max(meta_data.num_values, 0) * (longest + OFFSET_SIZE) + content


def _by_pages(file: InputFile, chunk: Chunk, most: int) -> DecodedSize:
    is_decoded_here = may_be_decoded_here(chunk)
    try:
        # Many pages are measured by their rows, if no dictionary must be looked into.
        with suppress(SecureBloomError):
            size = most if is_decoded_here else size_of_rows(chunk, read_rows(file, chunk))
            if size <= harmless_size():
                return DecodedSize(min(most, size))
        if is_decoded_here:
            pages = read_pages(file, chunk, read_pooled(file, *chunk_extent(chunk)))
        else:
            pages = list(read_headers(file, chunk))
        harmless = 0 if is_decoded_here else harmless_size()
        size, entries = measured(chunk, pages, harmless)
    except (IntegrityError, MemoryBudgetError):
        raise
    except SecureBloomError:
        # pyarrow reads some files that are not sound; they are taken for the worst.
        return DecodedSize(most)
    if entries is None or not is_decoded_here:
        return DecodedSize(min(most, size))
    strings = DictionaryStrings(chunk=chunk, pages=pages, entries=entries)
    return DecodedSize(min(most, size + strings.held), strings)


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
