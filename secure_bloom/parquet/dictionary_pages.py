"""The dictionary page of a column chunk, and whether its entries are all of the chunk's values.

``encoding_stats`` may claim so, and readers skip row groups and filters are built by it.  A claim
is not believed alone: the headers of all data pages are looked at, of which little is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer import Chunk
from secure_bloom.parquet.pages import (
    DICTIONARY,
    Page,
    Place,
    chunk_extent,
    has_dictionary_offset,
    page_at,
    walk,
)
from secure_bloom.parquet.structures.metadata import ColumnMetaData, Encoding, PageType
from secure_bloom.storage import InputFile

#: Under either name data pages refer to the dictionary.
DICTIONARY_ENCODINGS = frozenset({Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY})
_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})
#: Bytes that are read from a page's header on, more with each request up to the largest: the pages
#: of most chunks come with their dictionary, and those of a large one in few requests.
_FIRST, _LARGEST, _GROWTH = 64 * 1024, 4 * 1024 * 1024, 4
#: So much of a page is looked at for its header, before more is read.
_LEAST = 1024


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
    window = _Window(file, start, length, behind or _FIRST)
    page, _ = window.page(chunk, 0, DICTIONARY)
    return page if page.is_dictionary else None


def read_full_dictionary(file: InputFile, chunk: Chunk) -> Page | None:
    """The dictionary page, where the headers of all data pages say that they refer to it."""
    start, length = chunk_extent(chunk)
    behind = chunk.meta_data.data_page_offset - start
    if not 0 <= behind <= length:
        return None
    window = _Window(file, start, length, behind + _FIRST)
    try:
        return _full_dictionary(walk(chunk, partial(window.page, chunk)))
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


class _Window:
    """The bytes of a chunk that were read, of which more are read as pages are looked at."""

    def __init__(self, file: InputFile, start: int, length: int, first: int) -> None:
        self._file, self._start, self._length = file, start, length
        self._next = first
        self._from = 0
        self._held = memoryview(b"")

    def page(self, chunk: Chunk, position: int, place: Place) -> tuple[Page, int]:
        """The page at a position in the chunk, and where it ends.

        All of a dictionary page is there, of a data page at least the header.
        """
        room = self._length - position
        least = min(_LEAST, room)
        while True:
            view = self._view(position, least)
            try:
                page, length = page_at(chunk, view, room, place)
            except FormatError:
                if least >= min(room, _LARGEST):
                    raise
                least = min(max(_FIRST, least * _GROWTH), room, _LARGEST)
                continue
            if not page.is_dictionary or length <= len(view):
                return page, position + length
            least = length

    def _view(self, position: int, least: int) -> memoryview:
        """The bytes from a position on: so many at least."""
        skipped = position - self._from
        if len(self._held) - skipped < least:
            size = min(max(least, self._next), self._length - position)
            self._next = min(_LARGEST, max(_FIRST, self._next * _GROWTH))
            self._held = self._file.view_at(self._start + position, size)
            self._from, skipped = position, 0
        return self._held[skipped:]
