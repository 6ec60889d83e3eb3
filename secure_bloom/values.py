"""The distinct physical values of a column chunk, from as few bytes as say them all.

When every data page is dictionary-encoded the dictionary page alone is the set of values, and
nothing else is read.  Where a writer fell back from the dictionary in mid-chunk, the dictionary
and the pages after it are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from secure_bloom.decoding import decode_dictionary, decode_pages
from secure_bloom.errors import FormatError, located
from secure_bloom.footer import Chunk
from secure_bloom.metadata import ColumnMetaData, Encoding, PageType
from secure_bloom.pages import Page, read_dictionary_page, read_pages
from secure_bloom.storage import InputFile

_DICTIONARY_ENCODINGS = {Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY}
_DATA_PAGES = {PageType.DATA_PAGE, PageType.DATA_PAGE_V2}
#: Compressed bytes of pages that are decoded together, so that memory does not grow with a chunk.
_GROUP_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkValues:
    """The values of one chunk, once at least each, nulls left out.

    ``upper_bound`` is known before the first array: at most so many values come, so many distinct
    ones at most.  ``arrays`` can be iterated once.
    """

    source: Literal["dictionary", "pages"]
    upper_bound: int
    arrays: Iterator[pa.Array]


def read_values(file: InputFile, chunk: Chunk) -> ChunkValues:
    """The values of ``chunk``, read lazily; errors carry its row group and column."""
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        if _is_empty(chunk):
            return ChunkValues(source="pages", upper_bound=0, arrays=iter(()))
        if _says_all_dictionary(chunk.meta_data):
            page = read_dictionary_page(file, chunk)
            if page is not None:
                return _from_dictionary(chunk, [page])
        return _from_pages(chunk, read_pages(file, chunk))


def _is_empty(chunk: Chunk) -> bool:
    """Whether the chunk has no values: such a chunk may have no pages, and offsets of nought."""
    values, rows = chunk.meta_data.num_values, chunk.num_rows
    # A null counts as a value, and so does an empty list.
    if values < rows:
        raise FormatError(f"ColumnMetaData.num_values is {values}, the row group has {rows} rows")
    return values == 0


def _says_all_dictionary(meta_data: ColumnMetaData) -> bool:
    """Whether ``encoding_stats`` says that all data pages are dictionary-encoded."""
    stats = [s for s in meta_data.encoding_stats or [] if s.count > 0]
    data = [s.encoding for s in stats if s.page_type in _DATA_PAGES]
    return bool(data) and all(encoding in _DICTIONARY_ENCODINGS for encoding in data)


def _from_dictionary(chunk: Chunk, pages: Sequence[Page]) -> ChunkValues:
    return ChunkValues(
        source="dictionary",
        upper_bound=sum(page.num_values for page in pages),
        arrays=_located(chunk, _decode_dictionaries(chunk, pages)),
    )


def _from_pages(chunk: Chunk, pages: list[Page]) -> ChunkValues:
    # pyarrow takes an empty data page for the end of the chunk.
    pages = [page for page in pages if page.is_dictionary or page.num_values > 0]
    dictionary = [page for page in pages if page.is_dictionary]
    # Pages that refer to a dictionary which is not there must fail to decode, not count as empty.
    said = _DICTIONARY_ENCODINGS if dictionary else set[Encoding]()
    others = [page for page in pages if not page.is_dictionary and page.encoding not in said]
    if dictionary and not others:
        return _from_dictionary(chunk, dictionary)
    if chunk.leaf.is_repeated:
        # A page may start inside a row, so pages cannot be left out or decoded in groups.
        decoded = _decode(chunk, pages, chunk.num_rows, has_dictionary=bool(dictionary))
        bound = sum(page.num_values for page in pages if not page.is_dictionary)
    else:
        decoded = _decode_flat(chunk, dictionary, others)
        bound = sum(page.num_values for page in [*dictionary, *others])
    return ChunkValues(source="pages", upper_bound=bound, arrays=_located(chunk, decoded))


def _decode_flat(
    chunk: Chunk, dictionary: Sequence[Page], pages: Sequence[Page]
) -> Iterator[pa.Array]:
    yield from _decode_dictionaries(chunk, dictionary)
    for group in _groups(pages):
        rows = sum(page.num_values for page in group)
        yield from _decode(chunk, group, rows, has_dictionary=False)


def _decode_dictionaries(chunk: Chunk, pages: Sequence[Page]) -> Iterator[pa.Array]:
    for page in pages:
        if page.num_values > 0:
            yield from decode_dictionary(chunk.leaf, chunk.meta_data.codec, page)


def _decode(
    chunk: Chunk, pages: Sequence[Page], rows: int, *, has_dictionary: bool
) -> Iterator[pa.Array]:
    if rows == 0:
        return
    codec = chunk.meta_data.codec
    yield from decode_pages(chunk.leaf, codec, pages, rows=rows, has_dictionary=has_dictionary)


def _groups(pages: Sequence[Page]) -> Iterator[list[Page]]:
    group: list[Page] = []
    size = 0
    for page in pages:
        group.append(page)
        size += len(page.stored)
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _located(chunk: Chunk, arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        yield from arrays
