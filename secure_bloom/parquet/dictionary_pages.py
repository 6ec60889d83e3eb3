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
#: Bytes that are read from a page's header on: the pages of most chunks come with the dictionary.
_AHEAD = 64 * 1024
#: The same where pages are smaller than that, so that those of a large chunk take few requests.
_FAR_AHEAD = 1024 * 1024
#: So much of a page is looked at for its header, and so much in the end.
_HEADER, _LARGEST_HEADER = 1024, 4 * 1024 * 1024


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
    window = _Window(file, start, length, behind or _AHEAD)
    page, _ = window.page(chunk, 0, DICTIONARY)
    return page if page.is_dictionary else None


def read_full_dictionary(file: InputFile, chunk: Chunk) -> Page | None:
    """The dictionary page, where the headers of all data pages say that they refer to it."""
    start, length = chunk_extent(chunk)
    behind = chunk.meta_data.data_page_offset - start
    if not 0 <= behind <= length:
        return None
    window = _Window(file, start, length, behind + _AHEAD)
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
        self._ahead = first
        self._from = 0
        self._held = memoryview(b"")

    def page(self, chunk: Chunk, position: int, place: Place) -> tuple[Page, int]:
        """The page at a position in the chunk, and where it ends.

        All of a dictionary page is there, of a data page at least the header.
        """
        room = self._length - position
        wanted = min(_HEADER, room)
        while True:
            view = self._view(position, wanted)
            try:
                page, length = page_at(chunk, view, room, place)
            except FormatError:
                # The header is longer, or damaged.
                if wanted >= min(room, _LARGEST_HEADER):
                    raise
                wanted = min(max(_AHEAD, 4 * wanted), room, _LARGEST_HEADER)
                continue
            if not page.is_dictionary or length <= len(view):
                return page, position + length
            wanted = length

    def _view(self, position: int, wanted: int) -> memoryview:
        """The bytes from a position on, at least so many."""
        behind = position - self._from
        if len(self._held) - behind < wanted:
            # Pages that are larger than what is read ahead are skipped.
            ahead = _AHEAD if behind > len(self._held) else self._ahead
            self._ahead = _FAR_AHEAD
            size = min(max(wanted, ahead), self._length - position)
            self._held = self._file.view_at(self._start + position, size)
            self._from, behind = position, 0
        return self._held[behind:]
