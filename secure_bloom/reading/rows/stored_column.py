"""Find and read a few rows in one column of a row group, in its pages as they are stored.

    column = StoredColumn(file, footer, row_group, "email")
    rows = column.find(sought)      the rows that have one of the values
    column.take(Rows.of(ranges))    the values of rows, from the pages that have them

Pages are located by the offset index, or by their headers.  An open table keeps their places, as
far as it has memory.  Of an encrypted column only the modules of these pages are opened.  pyarrow
decodes a page with anything unusual, and that page alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.errors import (
    FormatError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.kernels.loops import Sought
from secure_bloom.parquet.decoded_bounds import harmless_size
from secure_bloom.parquet.dictionary_pages import (
    DICTIONARY_ENCODINGS,
    claims_full_dictionary,
    read_dictionary_page,
    read_full_dictionary,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.page_index import offset_index_extent, page_spans
from secure_bloom.parquet.page_values import (
    MOST_FOUND,
    PageValues,
    Positions,
    StoredDictionary,
    Taken,
    digests_of,
    joined,
)
from secure_bloom.parquet.pages import Page, chunk_extent, data_page, pages_in, read_pages
from secure_bloom.parquet.plain_pages import begun_rows
from secure_bloom.parquet.structures.metadata import Encoding, PageType
from secure_bloom.reading.rows.page_reads import (
    ReadWholeError,
    Rows,
    Span,
    decoded_rows,
)
from secure_bloom.reading.rows.taken_arrays import ArrayMaker, array_maker, united
from secure_bloom.reading.table.coalesced_reads import read_extents, read_pooled
from secure_bloom.reading.table.kept_chunks import KeptChunks
from secure_bloom.running.memory_budget import reserved
from secure_bloom.storage import InputFile, is_object_uri
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    from secure_bloom.reading.table.kept_chunks import Places

#: A dictionary is searched before the data pages are read if these have more bytes.
_LARGE = 1024 * 1024
#: Several leaves are decoded whole if rows need more than this share of their bytes.
_MOST_NEEDED = 0.5
#: What is read at least of a dictionary page, to find its header.
_FIRST_HEADER = 1024
#: The most rows that are taken out of a chunk without an offset index: more are decoded with it.
MOST_WALKED = 16
#: A chunk of fewer data pages is read with its dictionary: to locate them would save nothing.
_FEW_PAGES = 2
#: A chunk of more bytes is read in pieces.
_LARGEST_POOLED = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class _Placed:
    """A data page with its rows in the row group. The first one may begin in the page before."""

    page: Page
    start: int
    end: int


def _maker(footer: Footer, ordinal: int) -> ArrayMaker | None:
    """Return what makes arrays of a leaf's values, or None for a column that pyarrow must decode.

    The files of one schema share it.
    """
    columns = footer.columns
    if ordinal not in columns.prepared:
        leaf = columns.leaves[ordinal]
        type_ = columns.arrow.field(leaf.path[0]).type
        is_flat = len(leaf.path) == 1 and not leaf.is_repeated
        columns.prepared[ordinal] = array_maker(leaf, type_) if is_flat else None
    found: ArrayMaker | None = columns.prepared[ordinal]
    return found


class StoredColumn:
    """One leaf of a top-level column, in one row group.

    ``budget`` is the memory budget, if the caller knows it.  ``kept`` is what an open table
    keeps of chunks. What is found out here is added to it.
    """

    def __init__(
        self,
        file: InputFile,
        footer: Footer,
        chunk: Chunk,
        budget: int | None = None,
        kept: KeptChunks | None = None,
    ) -> None:
        self._file = file
        self._footer = footer
        self._chunk = chunk
        self._budget = budget
        self._kept = kept
        self._key = (footer.path, chunk.row_group, chunk.column)
        #: The bytes of the chunk, if they were read with those of other columns.
        self._stored: memoryview | None = None
        self._every: Sequence[Page] | None = None
        self._data: list[_Placed] | None = None
        self._values: dict[int, PageValues | None] = {}
        self._places: Places | None = None
        self._places_are_known = False
        #: What has all values of the chunk, once they were searched.
        self._searched: Sequence[PageValues | StoredDictionary] = ()
        self._opened: StoredDictionary | None = None
        self._dictionary_is_known = False

    @property
    def held(self) -> int:
        """The bytes of pages that are kept for a later call, decompressed."""
        return 0 if self._every is None else sum(page.uncompressed_size for page in self._every)

    def find(self, sought: Sought) -> Positions | None:
        """Return the rows that have one of the sought values, possibly with more rows.

        Return None for a column whose pages must be decoded to know.  Raises IntegrityError for a
        page that does not authenticate, with row group and column.
        """
        with located(row_group=self._chunk.row_group, column=self._chunk.leaf.name):
            try:
                found = self._found(sought)
            except (FormatError, UnsupportedFeatureError):
                # Decoding may understand the chunk, or will say what is wrong with it.
                return None
            if self._kept is not None and found is not None and not len(found):
                # The chunk's filter gave a false answer, and may give more of them.
                kept = self._kept.hashes
                if (
                    kept.of(self._key) is None
                    and (digests := digests_of(self._searched)) is not None
                ):
                    kept.keep(self._key, digests)
            return found

    def take(self, rows: Rows, others: Sequence[StoredColumn] = ()) -> pa.ChunkedArray | None:
        """Return these rows, or None if all pages of the column must be decoded.

        ``others`` are the other leaves of the top-level column, in order.  Raises ReadWholeError if
        the offset index contradicts a page.  Other errors carry row group and column.
        """
        leaf, leaves = self, (self, *others)
        try:
            if others and _need_most(leaves, rows):
                return None
            located_pages = list[Sequence[_Placed]]()
            for leaf in leaves:
                placed = leaf._pages_with(rows)
                if placed is None:
                    return None
                located_pages.append(placed)
            size = sum([it.page.uncompressed_size for placed in located_pages for it in placed])
            if size > harmless_size(self._budget):
                return None
            with reserved(size):
                taken = None if others else self._taken(located_pages[0], rows)
                return _decoded(leaves, located_pages, rows) if taken is None else taken
        except (FormatError, UnsupportedFeatureError):
            # What is wrong with a page is said, or not, by a decode of all pages.
            return None
        except SecureBloomError:
            chunk, path = leaf._chunk, self._footer.path
            with located(path=path, row_group=chunk.row_group, column=chunk.leaf.name):
                raise

    @property
    def index_extent(self) -> Extent | None:
        """The place of the offset index, if it is not in memory yet."""
        if self._every is not None or self._known_places() is not None or self._places_are_known:
            return None
        found = offset_index_extent(self._chunk, self._file.size)
        return None if found is None else (found[0], sum(found))

    def extents(self, rows: Rows) -> list[Extent]:
        """Return what :meth:`take` reads: the pages with these rows, and the dictionary."""
        chunk = self._chunk
        if self._every is not None:
            return []
        with suppress(FormatError, UnsupportedFeatureError):
            start, length = chunk_extent(chunk)
            places = self._page_places()
            if places is None:
                return [(start, start + length)]
            data = chunk.meta_data.data_page_offset
            behind = [(start, max(data, start + _FIRST_HEADER))] if data > start else []
            pages = places[self._pages_of(places, rows)].tolist()
            return [*behind, *((offset, offset + size) for offset, size, _, _ in pages)]
        return []

    def walked_extent(self, rows: Rows) -> tuple[int, int] | None:
        """Return offset and length of the chunk if :meth:`take` reads all of it, else None.

        Its bytes may be given to :meth:`hold` before.
        """
        try:
            if self._every is not None or not self._is_walked(rows):
                return None
            start, length = chunk_extent(self._chunk)
        except (FormatError, UnsupportedFeatureError):
            return None
        return None if length > _LARGEST_POOLED else (start, length)

    def hold(self, stored: memoryview) -> None:
        """Keep the bytes of the chunk until its pages are walked."""
        self._stored = stored

    def _found(self, sought: Sought) -> Positions | None:
        chunk = self._chunk
        if chunk.leaf.is_repeated:
            return None
        if self._is_large and claims_full_dictionary(chunk.meta_data):
            self._fetch_small()
            full = read_full_dictionary(self._file, chunk)
            dictionary = None if full is None else self._of(full)
            wanted = None if dictionary is None else dictionary.find(sought)
            if dictionary is not None and wanted is not None and not len(wanted.positions):
                self._searched = [dictionary]
                return wanted.positions
        every = self._walked()
        if every is None:
            return None
        dictionary = self._dictionary()
        wanted = None if dictionary is None else dictionary.find(sought)
        searched: list[PageValues | StoredDictionary] = [] if dictionary is None else [dictionary]
        self._searched = searched
        if (
            wanted is not None
            and not len(wanted.positions)
            and all(it.page.encoding in DICTIONARY_ENCODINGS for it in every)
        ):
            return wanted.positions
        found, rows = list[Positions](), 0
        for placed in every:
            values = self._page_values(placed)
            part = None if values is None else values.find(sought, wanted)
            if values is not None and values.encoding is Encoding.PLAIN:
                searched.append(values)
            if part is None or (rows := rows + len(part)) > MOST_FOUND:
                return None
            if len(part):
                found.append(part + placed.start)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _fetch_small(self) -> None:
        """Fetch the whole chunk of an object if it is hardly larger than its dictionary.

        This saves the request for its data pages.
        """
        start, length = chunk_extent(self._chunk)
        behind = self._chunk.meta_data.data_page_offset - start
        if length <= _LARGE and length <= 2 * behind + _FIRST_HEADER:
            self._file.read_ahead([(start, start + length)])

    @property
    def _is_large(self) -> bool:
        stored = self._chunk.meta_data.total_compressed_size
        return stored > _LARGE or is_object_uri(self._file.path)

    def _dictionary(self) -> StoredDictionary | None:
        """Return the chunk's dictionary, or None if there is none, or pyarrow must decode it."""
        if not self._dictionary_is_known:
            page = self._dictionary_page()
            self._opened = None if page is None else self._of(page)
            self._dictionary_is_known = True
        return self._opened

    def _dictionary_page(self) -> Page | None:
        if self._every is None:
            return read_dictionary_page(self._file, self._chunk)
        found = [page for page in self._every if page.type == PageType.DICTIONARY_PAGE]
        return found[0] if len(found) == 1 else None

    def _of(self, dictionary: Page) -> StoredDictionary | None:
        return StoredDictionary.of(self._chunk.leaf, self._chunk.codec, dictionary)

    def _page_values(self, placed: _Placed) -> PageValues | None:
        if placed.start not in self._values:
            leaf, codec = self._chunk.leaf, self._chunk.codec
            self._values[placed.start] = PageValues.of(leaf, codec, placed.page)
        return self._values[placed.start]

    def _walked(self) -> list[_Placed] | None:
        """Return all data pages of the column, or None for unusual pages."""
        if self._every is None:
            self._every = self._read_pages()
            self._data = self._placed(self._every)
            if self._data and self._data[-1].end != self._chunk.num_rows:
                # Rows without a value; whoever decodes the chunk says so.
                self._data = None
            self._keep_places()
        return self._data

    def _keep_places(self) -> None:
        """Keep the places of the pages that were found, if the next lookup reads less by them."""
        found = self._data
        if self._kept is not None and found is not None and len(found) >= _FEW_PAGES:
            self._kept.places.keep(self._key, self._places_in(found))

    def _places_in(self, found: Sequence[_Placed]) -> Places:
        places = np.array([(*it.page.extent, it.start, it.end) for it in found], np.int64)
        places[:, 1] -= places[:, 0]
        places[:, 0] += chunk_extent(self._chunk)[0]
        return places

    def _read_pages(self) -> list[Page]:
        stored, self._stored = self._stored, None
        start, length = (0, 0) if stored is not None else chunk_extent(self._chunk)
        if length > _LARGEST_POOLED:
            return read_pages(self._file, self._chunk)
        try:
            if stored is None:
                stored = read_pooled(self._file, start, length)
            return pages_in(self._chunk, stored, self._budget)
        except FormatError:
            return read_pages(self._file, self._chunk)

    def _pages_with(self, rows: Rows) -> list[_Placed] | None:
        """Return the pages that have some of the rows, or None if they cannot be located."""
        if self._stored is None and not self._is_walked(rows):
            places = self._page_places() if self._every is None else None
            return None if places is None else self._located(places, rows)
        every = self._walked()
        if every is None or len(every) == 1:
            return every
        if self._chunk.leaf.is_repeated:
            return [every[i] for i in self._pages_of(self._places_in(every), rows)]
        return [page for page in every if rows.are_in(page.start, page.end)]

    def _is_walked(self, rows: Rows) -> bool:
        """Return whether pages are located by walking their headers.

        That is so for few rows, if no page locations are known.
        """
        if self._every is None and self._page_places() is not None:
            return False
        return len(rows.positions) <= MOST_WALKED

    def _known_places(self) -> Places | None:
        """Return the places of the data pages that an earlier lookup has found, or None."""
        if self._places is None and self._kept is not None:
            self._places = self._kept.places.of(self._key)
        return self._places

    def _page_places(self) -> Places | None:
        """Return the places of the data pages, or None if all of the chunk must be read.

        They come from an earlier lookup, or from an offset index that fits the chunk.
        """
        if self._places_are_known:
            return self._places
        if self._known_places() is None:
            extent = offset_index_extent(self._chunk, self._file.size)
            spans = extent and page_spans(self._chunk, self._file.read_at(*extent))
            if spans:
                rows = [(it.offset, it.length, it.start, it.end) for it in spans]
                self._places = np.array(rows, np.int64)
                if self._kept is not None:
                    self._kept.places.keep(self._key, self._places)
        self._places_are_known = True
        return self._places

    def _located(self, places: Places, rows: Rows) -> list[_Placed]:
        """Read only the pages that contain these rows."""
        chunk, wanted = self._chunk, self._pages_of(places, rows).tolist()
        if len(rows) > MOST_FOUND and 2 * len(wanted) > len(places):
            raise ReadWholeError
        spans = dict(zip(wanted, places[wanted].tolist(), strict=True))
        stored = read_extents(self._file, {i: (it[0], it[1]) for i, it in spans.items()})
        found = list[_Placed]()
        for i, (_, _, start, end) in spans.items():
            page = data_page(chunk, stored[i], i)
            if page.is_dictionary:
                raise ReadWholeError
            # The rows of a single page of lists are counted when it is decoded.
            is_counted = len(spans) > 1 or not chunk.leaf.is_repeated
            if is_counted and self._rows_in(page, start) != (start, end):
                raise ReadWholeError
            found.append(_Placed(page, start, end))
        return found

    def _taken(self, placed: Sequence[_Placed], rows: Rows) -> pa.ChunkedArray | None:
        """Return rows that are copied out of the pages, or None if pyarrow must decode one."""
        maker = _maker(self._footer, self._chunk.column)
        if maker is None or len(rows.positions) > MOST_FOUND or not placed:
            return None
        parts = list[Taken]()
        for it in placed:
            values = self._page_values(it)
            if values is None:
                return None
            dictionary = self._dictionary() if values.encoding in DICTIONARY_ENCODINGS else None
            part = values.take(rows.within(it.start, it.end), dictionary)
            if part is None:
                return None
            parts.append(part)
        return pa.chunked_array([maker(parts[0] if len(parts) == 1 else joined(parts))])

    def _decodable(self, placed: Sequence[_Placed]) -> tuple[Chunk, list[Page]]:
        """Return the pages with the dictionary, if one of them refers to it."""
        pages = [it.page for it in placed]
        if any(page.encoding in DICTIONARY_ENCODINGS for page in pages):
            dictionary = self._dictionary_page()
            pages = [*([] if dictionary is None else [dictionary]), *pages]
        return self._chunk, pages

    def _placed(self, pages: Sequence[Page]) -> list[_Placed] | None:
        """Return the data pages with their rows, or None for unusual pages."""
        found, end, is_behind_empty = list[_Placed](), 0, False
        for ordinal, page in enumerate(pages):
            is_dictionary = page.type == PageType.DICTIONARY_PAGE
            if is_dictionary and ordinal == 0 and len(pages) > 1:
                continue
            if is_dictionary:
                return None
            if not page.num_values:
                # pyarrow takes a page without values for the end of the chunk, but in lists it goes
                # on with the next row.
                if is_behind_empty or not found or not self._chunk.leaf.is_repeated:
                    return None
                is_behind_empty = True
                continue
            rows = self._rows_in(page, end)
            if rows is None or (is_behind_empty and rows[0] < end):
                return None
            found.append(_Placed(page, *rows))
            end, is_behind_empty = rows[1], False
        return found

    def _rows_in(self, page: Page, end: int) -> Span | None:
        """Return the rows that have values in a page, after pages with the rows before ``end``.

        Return None if the repetition levels of the page do not show them.
        """
        leaf = self._chunk.leaf
        if not leaf.is_repeated:
            return end, end + page.num_values
        # A page that is no part of the answer is decompressed too.
        if page.uncompressed_size > harmless_size(self._budget):
            return None
        with reserved(page.uncompressed_size):
            begun = begun_rows(leaf, self._chunk.codec, page)
        if begun is None:
            return None
        count, begins_row = begun
        start = end if begins_row else end - 1
        return None if start < 0 else (start, end + count)

    def _pages_of(self, places: Places, rows: Rows) -> NDArray[np.intp]:
        """Return the ordinals of the pages that have some of the rows.

        If a page continues a row, the pages before it that have this row are among them.
        """
        starts, ends = places[:, 2], places[:, 3]
        # Each row begins on the first page that ends after it.
        first = np.searchsorted(ends, rows.positions, side="right")
        if not self._chunk.leaf.is_repeated:
            return np.unique(first)
        last = np.searchsorted(starts, rows.positions, side="right")
        begins_row = np.concatenate([[True], starts[1:] >= ends[:-1]])
        first = np.flatnonzero(begins_row)[np.cumsum(begins_row)[first] - 1]
        return np.unique(np.concatenate([np.arange(*it) for it in zip(first, last, strict=True)]))


def _need_most(leaves: Sequence[StoredColumn], rows: Rows) -> bool:
    """Return whether these rows need most bytes of the leaves, as far as places are known.

    pyarrow needs the dictionary for any page, and then decodes all pages in about the same time.
    """
    chunks = [leaf._chunk for leaf in leaves]
    most = _MOST_NEEDED * sum([it.meta_data.total_compressed_size for it in chunks])
    needed = sum([it.meta_data.data_page_offset - chunk_extent(it)[0] for it in chunks])
    for leaf in leaves if needed <= most else ():
        places = leaf._page_places() if leaf._every is None else None
        if places is not None:
            needed += int(places[leaf._pages_of(places, rows), 1].sum())
    return needed > most


def _decoded(
    leaves: Sequence[StoredColumn], located_pages: Sequence[Sequence[_Placed]], rows: Rows
) -> pa.ChunkedArray | None:
    """Return the rows as pyarrow decodes them from these pages of each leaf alone.

    Return None if the leaves contradict each other, and for several leaves whose pages have most of
    their bytes: one decode of all of them takes less time.
    """
    footer, every = leaves[0]._footer, list[list[Span]]()
    columns = [leaf._decodable(it) for leaf, it in zip(leaves, located_pages, strict=True)]
    size = sum([page.uncompressed_size for _, pages in columns for page in pages])
    stored = sum([chunk.meta_data.total_uncompressed_size for chunk, _ in columns])
    if len(leaves) > 1 and size > _MOST_NEEDED * stored:
        return None
    for placed in located_pages:
        # A row that goes over pages counts once.
        ends = [0, *(it.end for it in placed)]
        every.append([(max(it.start, end), it.end) for it, end in zip(placed, ends, strict=False)])
    if all(spans == every[0] for spans in every):
        return decoded_rows(footer, columns, every[0], rows.ranges)
    parts = [
        decoded_rows(footer, [column], spans, rows.ranges).combine_chunks()
        for column, spans in zip(columns, every, strict=True)
    ]
    whole = united(footer.columns.arrow.field(columns[0][0].leaf.path[0]), parts)
    return None if whole is None else pa.chunked_array([whole])
