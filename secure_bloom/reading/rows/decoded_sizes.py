"""The most bytes that column chunks can take when decoded, as their pages tell.

Encodings know few bytes that stand for many: a run of a billion equal values, a dictionary with an
entry of a megabyte, codecs that turn kilobytes into gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from secure_bloom.errors import FormatError, IntegrityError, SecureBloomError, located
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.page_headers import read_headers
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.plain_pages import plain_values
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, Type
from secure_bloom.storage import InputFile, is_object_uri
from secure_bloom.storage.memory_budget import MemoryBudgetError, memory_budget, refuse_beyond

#: This part of the budget, 256 MiB by default, is decoded in one piece without a closer look.
_HARMLESS = 4
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
_OFFSET_SIZE = 8


def harmless_size() -> int:
    """Bytes that may be decoded in one piece."""
    return memory_budget() // _HARMLESS


def decoded_size(file: InputFile, chunk: Chunk) -> int:
    """The bytes that all values of the chunk take decoded at most, with its largest page.

    Raises MemoryBudgetError where a single page, or the values of a list, which cannot be cut,
    take more than the budget.
    """
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        # Each page's header of an object is a request: there the footer's own numbers must do.
        size = _claimed(chunk) if is_object_uri(file.path) else _by_metadata(chunk)
        if size > harmless_size():
            size = _by_pages(file, chunk, size)
        if chunk.leaf.is_repeated:
            refuse_beyond(size, "the column's lists")
        return size


def _claimed(chunk: Chunk) -> int:
    meta_data = chunk.meta_data
    values = max(meta_data.num_values, 0) * ((chunk.leaf.width or 0) + _OFFSET_SIZE)
    return values + max(meta_data.total_uncompressed_size, 0)


def _by_metadata(chunk: Chunk) -> int:
    """An upper bound, whatever the pages hold."""
    meta_data = chunk.meta_data
    ratio = _RATIOS.get(meta_data.codec, _LARGEST_PAGE)
    content = min(max(meta_data.total_compressed_size, 1) * ratio, _LARGEST_PAGE)
    longest = chunk.leaf.width or content
    return max(meta_data.num_values, 0) * (longest + _OFFSET_SIZE) + content


def _by_pages(file: InputFile, chunk: Chunk, most: int) -> int:
    try:
        return min(most, size_of_pages(chunk, read_headers(file, chunk)))
    except (IntegrityError, MemoryBudgetError):
        raise
    except SecureBloomError:
        # pyarrow reads some files that are not sound; they are taken for the worst.
        return most


def size_of_pages(chunk: Chunk, pages: Iterable[Page]) -> int:
    """The bytes that these pages take decoded at most; a dictionary page comes first."""
    every = list(pages)
    size = _sum(chunk, every, lambda _chunk, _page, content: content)
    # A dictionary is decoded where its entries could be what is too long.
    return size if size <= harmless_size() else _sum(chunk, every, _longest_entry)


def _sum(chunk: Chunk, pages: Iterable[Page], entry_of: Callable[[Chunk, Page, int], int]) -> int:
    largest = entry = size = 0
    for page in pages:
        content = max(page.header.uncompressed_page_size, 0)
        largest = max(largest, content)
        if page.is_dictionary:
            entry = entry_of(chunk, page, content)
        else:
            size += _values_size(chunk, page, content, entry)
    return size + largest


def _values_size(chunk: Chunk, page: Page, content: int, entry: int) -> int:
    width = chunk.leaf.width
    if width is not None:
        return page.num_values * (width + 1)
    offsets = page.num_values * _OFFSET_SIZE
    if page.encoding in (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY):
        return page.num_values * entry + offsets
    if page.encoding is Encoding.DELTA_BYTE_ARRAY:
        # Each value may begin with all of the one before it.
        return page.num_values * content + offsets
    return content + offsets


def _longest_entry(chunk: Chunk, page: Page, content: int) -> int:
    """The bytes of the longest entry of a dictionary; where it does not tell, all of them."""
    if chunk.leaf.type is not Type.BYTE_ARRAY:
        return content
    values = plain_values(chunk.leaf, chunk.meta_data.codec, page)
    if values is None or values.count == 0:
        return content
    from secure_bloom.kernels.loops import DAMAGED, byte_array_offsets

    offsets = np.empty(values.count + 1, np.int64)
    if (
        len(values.content) < 4 * values.count
        or byte_array_offsets(values.content, offsets) == DAMAGED
    ):
        raise FormatError("the dictionary page does not hold its entries")
    return int(np.diff(offsets).max())
