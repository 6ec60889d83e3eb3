"""The dictionary page of a column chunk, and whether it holds all of the chunk's values.

``encoding_stats`` may say so.  Readers skip row groups by this statement and filters are built on
it, so it is checked: the headers of all data pages must agree, and reading them is cheap.

Headers are read without most of the pages' bodies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import (
    DICTIONARY,
    Page,
    PageFinder,
    Place,
    check_data_follows,
    chunk_extent,
    has_dictionary_offset,
    walk,
)
from secure_bloom.parquet.structures.metadata import ColumnMetaData, Encoding, PageType
from secure_bloom.running.memory_budget import refuse_beyond
from secure_bloom.storage import InputFile, is_object_uri

if TYPE_CHECKING:
    from secure_bloom.parquet.page_rows import PageRows

#: Bytes that are read from a page's header on: the pages of most chunks come with the dictionary.
_AHEAD = 64 * 1024
#: Read instead if pages are smaller than that, so that the pages of a large chunk take few
#: requests.
_FAR_AHEAD = 1024 * 1024
#: Read instead if bodies are wanted: a page at the end of what was read is read twice.
_BODIES_AHEAD = 8 * 1024 * 1024
#: Data pages with headers of their own that are looked at one by one. Most chunks have fewer.
_FEW_PAGES = 64
#: A header is looked for in this number of bytes of a page first, and in this number in the end.
_HEADER, _LARGEST_HEADER = 1024, 4 * 1024 * 1024


def read_headers(file: InputFile, chunk: Chunk, *, with_bodies: bool = False) -> Iterator[Page]:
    """Yield the chunk's pages. Only a dictionary page has all of its body, unless ``with_bodies``.

    Consecutive data pages with the same header bytes are yielded as the same object again.  Memory
    holds few pages if the caller keeps none.  Raises FormatError if the pages do not hold exactly
    ``num_values`` values.
    """
    return _Window.of(file, chunk, with_bodies=with_bodies).pages()


def read_rows(file: InputFile, chunk: Chunk) -> Iterator[PageRows]:
    """Yield the chunk's pages as rows of numbers, much faster than :func:`read_headers`.

    Raises the errors of :func:`.page_rows.walk_rows`: the caller then reads the headers.
    """
    # Loaded for chunks of many pages alone.
    from secure_bloom.parquet.page_rows import walk_rows

    window = _Window.of(file, chunk)
    return walk_rows(chunk, window.view, window.length)


def end_of_pages(file: InputFile, chunk: Chunk) -> int:
    """Return the offset at which the last page of the chunk ends.

    Raises the errors of :func:`read_headers`.
    """
    start, _ = chunk_extent(chunk)
    window, finder, end = _Window.of(file, chunk), PageFinder(chunk), 0
    with suppress(SecureBloomError):
        end = sum(int(it.ends[-1]) for it in read_rows(file, chunk))
    if end:
        return start + end

    def read(position: int, place: Place) -> tuple[Page, int]:
        nonlocal end
        page, end = window.page(finder, position, place)
        return page, end

    # Without values the walk sees no page, and pyarrow writes a dictionary's all the same.
    if chunk.meta_data.num_values == 0 and has_dictionary_offset(chunk):
        read(0, DICTIONARY)
    for _ in walk(chunk, read):
        pass
    return start + end


def read_first_header(file: InputFile, chunk: Chunk, *, ahead: int | None) -> Page:
    """Return the first page of the chunk. The first read covers ``ahead`` bytes.

    An encrypted chunk must begin with a dictionary page: the type of a page is part of its AAD.
    """
    page, end = _Window(file, chunk, ahead or _AHEAD).page(PageFinder(chunk), 0, DICTIONARY)
    if has_dictionary_offset(chunk):
        check_data_follows(chunk.meta_data, end)
    return page


class _Window:
    """The part of a chunk that has been read. It grows as pages are accessed."""

    def __init__(
        self, file: InputFile, chunk: Chunk, first: int, *, with_bodies: bool = False
    ) -> None:
        self.chunk = chunk
        self._file = file
        self._start, self.length = chunk_extent(chunk)
        self._ahead = first
        # A request of an object takes as long as many bytes do, a read of a local file does not.
        self._behind_a_gap = _AHEAD if is_object_uri(file.path) else 0
        self._from = 0
        self._held = memoryview(b"")
        self._with_bodies = with_bodies

    @classmethod
    def of(cls, file: InputFile, chunk: Chunk, *, with_bodies: bool = False) -> _Window:
        """Return the window of a chunk whose dictionary page, if it has one, is read first."""
        start, _ = chunk_extent(chunk)
        first = max(0, chunk.meta_data.data_page_offset - start) + _AHEAD
        return cls(file, chunk, first, with_bodies=with_bodies)

    def pages(self) -> Iterator[Page]:
        """Yield the pages of the chunk in order, of data pages at least the headers."""
        return walk(self.chunk, partial(self.page, PageFinder(self.chunk)), self.repeats)

    def page(self, finder: PageFinder, position: int, place: Place) -> tuple[Page, int]:
        """Return the page at a position in the chunk, and where it ends.

        A dictionary page is read whole. Of a data page at least the header is read, with
        ``with_bodies`` the page.
        """
        room = self.length - position
        wanted = min(_HEADER, room)
        while True:
            view = self.view(position, wanted)
            try:
                page, end = finder.page(view, position, room, place)
            except FormatError:
                # The header is longer, or damaged.
                if wanted >= min(room, _LARGEST_HEADER):
                    raise
                # Four times as much each time: only statistics of long values make a header so
                # long.
                wanted = min(max(_AHEAD, 4 * wanted), room, _LARGEST_HEADER)
                continue
            # A data page's header is enough; of the dictionary the values are needed too.
            is_whole = end - position <= len(view)
            if is_whole or not (page.is_dictionary or self._with_bodies):
                return page, end
            wanted = end - position
            refuse_beyond(wanted, "a page")

    def repeats(self, page: Page, position: int, step: int, most: int) -> int:
        """Return how often the page follows itself: see :data:`.pages.Repeats`."""
        # An encrypted header never occurs twice: its module has a nonce.
        if page.cipher is not None:
            return 0
        most = min(most, (self.length - position) // step)
        return self._file.repeats(page.encoded_header, self._start + position, step, most)

    def view(self, position: int, wanted: int) -> memoryview:
        """Return at least ``wanted`` bytes from a position on."""
        behind = position - self._from
        if len(self._held) - behind < wanted:
            # Pages that are larger than what is read ahead are skipped.
            ahead = self._behind_a_gap if behind > len(self._held) else self._ahead
            self._ahead = _BODIES_AHEAD if self._with_bodies else _FAR_AHEAD
            size = min(max(wanted, ahead), self.length - position)
            self._held = self._file.view_at(self._start + position, size)
            self._from, behind = position, 0
        return self._held[behind:]


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
    # A data page before the chunk or after it: no dictionary can be found from these offsets.
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
    window = _Window.of(file, chunk)
    pages = window.pages()
    try:
        page = next(pages, None)
    except FormatError:
        # No error here: the caller then reads all pages, and reading them shows what is wrong.
        return None
    if page is None or not page.is_dictionary:
        return None
    return ClaimedDictionary(page, pages, window)


class ClaimedDictionary:
    """A dictionary ``page``. ``is_full()`` checks whether it holds all values of the chunk."""

    def __init__(self, page: Page, rest: Iterator[Page], window: _Window) -> None:
        self.page = page
        self._rest = rest
        self._window = window

    def is_full(self) -> bool:
        """Return whether all data pages refer to the dictionary, by their headers.

        Can be called once.
        """
        try:
            return self._all_refer()
        except FormatError:
            # Not full is the safe answer: nothing is left out by it, and reading the pages shows
            # what is wrong.
            return False

    def _all_refer(self) -> bool:
        before, different = None, 0
        for page in self._rest:
            # Most pages of a chunk are one object, which comes again and costs a comparison.
            if page is before:
                continue
            if not self._refers(page):
                return False
            before, different = page, different + 1
            if different == _FEW_PAGES and self._rows_refer():
                return True
        return True

    def _rows_refer(self) -> bool:
        """Return whether all of many pages refer to the dictionary. False proves nothing."""
        # Loaded for chunks of many pages alone.
        from secure_bloom.parquet.page_rows import walk_rows

        window = self._window
        try:
            return all(
                DICTIONARY_ENCODINGS.issuperset(rows.encodings[rows.is_data].tolist())
                for rows in walk_rows(window.chunk, window.view, window.length)
            )
        except SecureBloomError:
            return False

    @staticmethod
    def _refers(page: Page) -> bool:
        # A second dictionary would give other values to the pages after it.
        return not page.is_dictionary and page.encoding in DICTIONARY_ENCODINGS
