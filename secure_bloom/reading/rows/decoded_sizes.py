"""Compute, from their pages, an upper bound of the decoded size of column chunks.

In some encodings a few bytes expand to many: a run of a billion equal values, a dictionary with an
entry of a megabyte, codecs that turn kilobytes into gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from secure_bloom.errors import IntegrityError, SecureBloomError, located
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS, read_headers
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import Page, read_pages
from secure_bloom.parquet.plain_pages import plain_entries
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding
from secure_bloom.parquet.value_arrays import Binary
from secure_bloom.reading.rows.dictionary_strings import DictionaryStrings, may_be_decoded_here
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
    """Return how many bytes may be decoded in one piece."""
    return memory_budget() // _HARMLESS


class DecodedSize(NamedTuple):
    """The decoded size of values in bytes, at ``most``.

    ``strings`` are the values, if all pages were read to measure them, so that they are decoded
    here.
    """

    most: int
    strings: DictionaryStrings | None = None


def decoded_size(file: InputFile, chunk: Chunk) -> DecodedSize:
    """Return an upper bound of the decoded size of all values of the chunk, with its largest page.

    Raises MemoryBudgetError if a single page, or the values of a list, which cannot be cut, take
    more than the budget.
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
    values = max(meta_data.num_values, 0) * ((chunk.leaf.width or 0) + _OFFSET_SIZE)
    return values + max(meta_data.total_uncompressed_size, 0)


def _by_metadata(chunk: Chunk) -> int:
    """Return an upper bound that holds whatever the pages contain."""
    meta_data = chunk.meta_data
    ratio = _RATIOS.get(meta_data.codec, _LARGEST_PAGE)
    content = min(max(meta_data.total_compressed_size, 1) * ratio, _LARGEST_PAGE)
    longest = chunk.leaf.width or content
    return max(meta_data.num_values, 0) * (longest + _OFFSET_SIZE) + content


def _by_pages(file: InputFile, chunk: Chunk, most: int) -> DecodedSize:
    is_decoded_here = may_be_decoded_here(chunk)
    try:
        pages = list((read_pages if is_decoded_here else read_headers)(file, chunk))
        size, entries = _measured(chunk, pages, always=is_decoded_here)
    except (IntegrityError, MemoryBudgetError):
        raise
    except SecureBloomError:
        # pyarrow reads some files that are not sound; they are taken for the worst.
        return DecodedSize(most)
    if entries is None or not is_decoded_here:
        return DecodedSize(min(most, size))
    strings = DictionaryStrings(chunk=chunk, pages=pages, entries=entries)
    return DecodedSize(min(most, size + strings.held), strings)


def size_of_pages(chunk: Chunk, pages: Sequence[Page]) -> int:
    """Return an upper bound of the decoded size of these pages, with the dictionary page first."""
    return _measured(chunk, pages, always=False)[0]


def _measured(chunk: Chunk, pages: Sequence[Page], *, always: bool) -> tuple[int, Binary | None]:
    """Return the size of the pages, and the dictionary's entries if they were decompressed.

    They are decompressed if their lengths could make the size too large, or if ``always``.
    """
    size = _sum(chunk, pages, None)
    entries = _entries(chunk, pages) if always or size > harmless_size() else None
    if entries is None:
        return size, None
    return _sum(chunk, pages, int(np.diff(entries.offsets).max())), entries


def _sum(chunk: Chunk, pages: Sequence[Page], longest: int | None) -> int:
    """Return the size if no entry of the dictionary is longer than ``longest``.

    None means that an entry may be as long as the whole dictionary.
    """
    largest = entry = size = 0
    for page in pages:
        content = max(page.uncompressed_size, 0)
        largest = max(largest, content)
        if page.is_dictionary:
            entry = content if longest is None else longest
        else:
            size += _values_size(chunk, page, content, entry)
    return size + largest


def _values_size(chunk: Chunk, page: Page, content: int, entry: int) -> int:
    width = chunk.leaf.width
    if width is not None:
        return page.num_values * (width + 1)
    offsets = page.num_values * _OFFSET_SIZE
    if page.encoding in DICTIONARY_ENCODINGS:
        return page.num_values * entry + offsets
    if page.encoding is Encoding.DELTA_BYTE_ARRAY:
        # Each value may begin with all of the one before it.
        return page.num_values * content + offsets
    return content + offsets


def _entries(chunk: Chunk, pages: Sequence[Page]) -> Binary | None:
    """Return the entries of the one dictionary page, or None if they are not readable there."""
    dictionaries = [page for page in pages if page.is_dictionary]
    if len(dictionaries) != 1:
        return None
    entries = plain_entries(chunk.leaf, chunk.meta_data.codec, dictionaries[0])
    return entries if isinstance(entries, Binary) and len(entries) else None
