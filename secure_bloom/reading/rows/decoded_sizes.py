"""Compute, from their pages, an upper bound of the decoded size of column chunks.

In some encodings a few bytes expand to many: a run of a billion equal values, a dictionary with an
entry of a megabyte, codecs that turn kilobytes into gigabytes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from secure_bloom.errors import IntegrityError, SecureBloomError, located
from secure_bloom.parquet.decoded_bounds import OFFSET_SIZE, harmless_size, measured, size_of_rows
from secure_bloom.parquet.dictionary_pages import read_headers, read_rows
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import chunk_extent, read_pages
from secure_bloom.parquet.structures.metadata import CompressionCodec
from secure_bloom.reading.rows.dictionary_strings import DictionaryStrings, may_be_decoded_here
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
