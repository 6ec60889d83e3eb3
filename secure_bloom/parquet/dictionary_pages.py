"""The dictionary page of a column chunk, and whether it holds all of the chunk's values.

``encoding_stats`` may say so.  Readers skip row groups by this statement and filters are built on
it, so it is checked: the headers of all data pages must agree, and reading them is cheap.
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.opened import Chunk
from secure_bloom.parquet.page_headers import read_first_header, read_headers
from secure_bloom.parquet.pages import Page, chunk_extent, has_dictionary_offset
from secure_bloom.parquet.structures.metadata import ColumnMetaData, Encoding, PageType
from secure_bloom.storage import InputFile

#: Both names say that a data page refers to the dictionary.
DICTIONARY_ENCODINGS = frozenset({Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY})
_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})


def claims_full_dictionary(meta_data: ColumnMetaData) -> bool:
    """Return whether ``encoding_stats`` says that all data pages are dictionary-encoded."""
    # An entry with a count of 0 is of a kind of page that the chunk lacks; it says nothing.
    stats = [stat for stat in meta_data.encoding_stats or [] if stat.count != 0]
    data = [stat.encoding for stat in stats if stat.page_type in _DATA_PAGES]
    return bool(data) and all(encoding in DICTIONARY_ENCODINGS for encoding in data)


def read_dictionary_page(file: InputFile, chunk: Chunk) -> Page | None:
    """Return the chunk's dictionary page, or None, without reading the pages after it.

    Some writers do not set dictionary_page_offset, and set data_page_offset to the dictionary.
    """
    start, length = chunk_extent(chunk)
    behind = chunk.meta_data.data_page_offset - start
    # A data page before the chunk or behind it: no dictionary can be told from these offsets.
    if not 0 <= behind <= length:
        return None
    # Encrypted, a page opens only as the type that it is: tried as a dictionary, a data page would
    # be an error.
    if behind == 0 and chunk.cipher is not None and not has_dictionary_offset(chunk):
        return None
    page = read_first_header(file, chunk, ahead=behind or None)
    return page if page.is_dictionary else None


def read_full_dictionary(file: InputFile, chunk: Chunk) -> Page | None:
    """Return the dictionary page if the headers of all data pages refer to it, else None."""
    claimed = open_dictionary(file, chunk)
    return None if claimed is None or not claimed.is_full() else claimed.page


def open_dictionary(file: InputFile, chunk: Chunk) -> ClaimedDictionary | None:
    """Return the chunk's dictionary page, before the headers of the data pages are read."""
    pages = read_headers(file, chunk)
    try:
        page = next(pages, None)
    except FormatError:
        # No error here: the caller then reads all pages, and reading them tells what is wrong.
        return None
    return ClaimedDictionary(page, pages) if page is not None and page.is_dictionary else None


class ClaimedDictionary:
    """A dictionary ``page``. ``is_full()`` checks whether it holds all values of the chunk."""

    def __init__(self, page: Page, rest: Iterator[Page]) -> None:
        self.page = page
        self._rest = rest

    def is_full(self) -> bool:
        """Return whether all data pages refer to the dictionary, by their headers.

        Can be called once.
        """
        try:
            return self._all_refer()
        except FormatError:
            # Not full is the safe answer: nothing is left out by it, and reading the pages tells
            # what is wrong.
            return False

    def _all_refer(self) -> bool:
        before = None
        for page in self._rest:
            # Most pages of a chunk are one object, which comes again.
            if page is not before and not self._refers(page):
                return False
            before = page
        return True

    @staticmethod
    def _refers(page: Page) -> bool:
        # A second dictionary would give other values to the pages behind it.
        return not page.is_dictionary and page.encoding in DICTIONARY_ENCODINGS
