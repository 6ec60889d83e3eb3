"""Read the headers of a chunk's pages, without most of the pages' bodies.

The headers are used to check what the footer says about the pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.opened import Chunk
from secure_bloom.parquet.pages import DICTIONARY, Page, PageFinder, Place, chunk_extent, walk
from secure_bloom.storage import InputFile, is_object_uri

#: Bytes that are read from a page's header on: the pages of most chunks come with the dictionary.
_AHEAD = 64 * 1024
#: Read instead if pages are smaller than that, so that the pages of a large chunk take few
#: requests.
_FAR_AHEAD = 1024 * 1024
#: A header is looked for in this number of bytes of a page first, and in this number in the end.
_HEADER, _LARGEST_HEADER = 1024, 4 * 1024 * 1024


def read_headers(file: InputFile, chunk: Chunk) -> Iterator[Page]:
    """Yield the chunk's pages. Only a dictionary page has all of its body.

    Consecutive data pages with the same header bytes are yielded as the same object again.  Raises
    FormatError if the pages do not hold exactly ``num_values`` values.
    """
    start, length = chunk_extent(chunk)
    behind = max(0, chunk.meta_data.data_page_offset - start)
    window = _Window(file, start, length, behind + _AHEAD)
    return walk(chunk, partial(window.page, PageFinder(chunk)), window.repeats)


def read_first_header(file: InputFile, chunk: Chunk, *, ahead: int | None) -> Page:
    """Return the first page of the chunk, of which ``ahead`` bytes are read at first.

    An encrypted chunk must begin with a dictionary page: the type of a page is part of its AAD.
    """
    start, length = chunk_extent(chunk)
    page, _ = _Window(file, start, length, ahead or _AHEAD).page(PageFinder(chunk), 0, DICTIONARY)
    return page


class _Window:
    """The part of a chunk that has been read. It grows as pages are accessed."""

    def __init__(self, file: InputFile, start: int, length: int, first: int) -> None:
        self._file, self._start, self._length = file, start, length
        self._ahead = first
        # A request of an object takes as long as many bytes do, a read of a local file does not.
        self._behind_a_gap = _AHEAD if is_object_uri(file.path) else 0
        self._from = 0
        self._held = memoryview(b"")

    def page(self, finder: PageFinder, position: int, place: Place) -> tuple[Page, int]:
        """Return the page at a position in the chunk, and where it ends.

        A dictionary page is read whole. Of a data page at least the header is read.
        """
        room = self._length - position
        wanted = min(_HEADER, room)
        while True:
            view = self._view(position, wanted)
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
            if not page.is_dictionary or end - position <= len(view):
                return page, end
            wanted = end - position

    def repeats(self, page: Page, position: int, step: int, most: int) -> int:
        """Return how often the page follows itself: see :data:`.pages.Repeats`."""
        # An encrypted header never stands there twice: its module has a nonce.
        if page.cipher is not None:
            return 0
        most = min(most, (self._length - position) // step)
        return self._file.repeats(page.encoded_header, self._start + position, step, most)

    def _view(self, position: int, wanted: int) -> memoryview:
        """Return at least ``wanted`` bytes from a position on."""
        behind = position - self._from
        if len(self._held) - behind < wanted:
            # Pages that are larger than what is read ahead are skipped.
            ahead = self._behind_a_gap if behind > len(self._held) else self._ahead
            self._ahead = _FAR_AHEAD
            size = min(max(wanted, ahead), self._length - position)
            self._held = self._file.view_at(self._start + position, size)
            self._from, behind = position, 0
        return self._held[behind:]
