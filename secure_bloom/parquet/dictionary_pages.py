"""The dictionary page of a column chunk, and whether its entries are all of the chunk's values.

``encoding_stats`` may claim so, and readers skip row groups and filters are built by it.  A claim
is not believed alone: the headers of all data pages are looked at, of which little is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.page_headers import read_first_header, read_headers
from secure_bloom.parquet.pages import Page, chunk_extent, has_dictionary_offset
from secure_bloom.parquet.structures.metadata import ColumnMetaData, Encoding, PageType
from secure_bloom.storage import InputFile

#: Under either name data pages refer to the dictionary.
DICTIONARY_ENCODINGS = frozenset({Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY})
_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})


def claims_full_dictionary(meta_data: ColumnMetaData) -> bool:
    """Whether ``encoding_stats`` says that all data pages are dictionary-encoded."""
    stats = [stat for stat in meta_data.encoding_stats or [] if stat.count != 0]
    data = [stat.encoding for stat in stats if stat.page_type in _DATA_PAGES]
    return bool(data) and all(encoding in DICTIONARY_ENCODINGS for encoding in data)


def read_dictionary_page(file: InputFile, chunk: Chunk) -> Page | None:
    """The chunk's dictionary page alone, reading nothing behind it; None where there is none.

    Some writers name no dictionary, and its offset as that of the first data page.
    """
    start, length = chunk_extent(chunk)
    behind = chunk.meta_data.data_page_offset - start
    if not 0 <= behind <= length:
        return None
    if behind == 0 and chunk.cipher is not None and not has_dictionary_offset(chunk):
        return None
    page = read_first_header(file, chunk, ahead=behind or None)
    return page if page.is_dictionary else None


def read_full_dictionary(file: InputFile, chunk: Chunk) -> Page | None:
    """The dictionary page, where the headers of all data pages say that they refer to it."""
    try:
        return _full_dictionary(read_headers(file, chunk))
    except FormatError:
        # Who reads all pages says what is wrong with them, or copes with it.
        return None


def _full_dictionary(pages: Iterator[Page]) -> Page | None:
    found = None
    for page in pages:
        if page.is_dictionary and found is None:
            found = page
        elif page.is_dictionary or page.encoding not in DICTIONARY_ENCODINGS:
            return None
    return found
