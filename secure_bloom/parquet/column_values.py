"""Read the distinct physical values of a column chunk from as few bytes as possible.

If every data page is dictionary-encoded, the dictionary page holds all values, and only the headers
of the other pages are read.  If the writer gave up the dictionary in the middle of the chunk, the
dictionary page and the data pages after that point hold all values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import (
    FormatError,
    SecureBloomError,
    UnsupportedFeatureError,
    located,
)
from secure_bloom.parquet.dictionary_pages import (
    DICTIONARY_ENCODINGS,
    claims_full_dictionary,
    read_full_dictionary,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.memory_files import StoredPages
from secure_bloom.parquet.page_rows import FIRST_PAGES, PageRows, walk_rows
from secure_bloom.parquet.pages import (
    Page,
    chunk_extent,
    first_page,
    read_first_pages,
    read_pages,
)
from secure_bloom.parquet.plain_pages import encoded_entries, plain_entries
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding
from secure_bloom.parquet.value_arrays import EncodedValues, Entries, as_entries
from secure_bloom.running.memory_budget import refuse_beyond, reserved
from secure_bloom.storage import InputFile

# Loaded for pages that need pyarrow's decoder: most of those of filters do not.
if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
E = TypeVar("E", covariant=True)
#: The values of a page; None where pyarrow must decode it.
PlainReader = Callable[[Leaf, CompressionCodec, Page], E | None]

#: Compressed bytes of pages to decode together: memory must not grow with the size of a chunk.
_GROUP_BYTES = 16 * 1024 * 1024
#: Least bytes of a decoded value, with its offset.
_LEAST_VALUE = 8
#: Pages of fewer values than these, on average, are small ones: pyarrow takes less time for all of
#: them than a call for each page takes.
_FEW_VALUES = 4096
#: Most decompressed bytes of a sample: a hostile file could ask for any amount of memory.
_SAMPLE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkEntries(Generic[E]):
    """The values of one chunk, without nulls, in the form that is hashed fastest.

    ``entries`` has each value at least once, and can be iterated once. ``upper_bound`` is known
    before the first array is read: there are at most as many values, hence at most as many distinct
    values.
    """

    source: Literal["dictionary", "pages"]
    upper_bound: int
    entries: Iterator[E]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The pages of a chunk that together hold all its values.

    Data pages are in ``small`` if there are many small ones, otherwise in ``data``.
    """

    chunk: Chunk
    dictionary: Sequence[Page] = ()
    data: Sequence[Page] = ()
    small: Sequence[_SmallPages] = ()

    @property
    def source(self) -> Literal["dictionary", "pages"]:
        return "pages" if self.data or self.small or not self.dictionary else "dictionary"

    @property
    def upper_bound(self) -> int:
        # Rows that refer to the dictionary are among those pages, so its entries are not counted
        # twice.
        counted = self.data if self.is_whole else [*self.dictionary, *self.data]
        return sum(page.num_values for page in counted) + sum(it.values for it in self.small)

    @property
    def is_whole(self) -> bool:
        """Whether all data pages are needed: a row of a list may continue on the next page."""
        return bool(self.data or self.small) and self.chunk.leaf.is_repeated


def read_entries(file: InputFile, chunk: Chunk) -> ChunkEntries[Entries]:
    """Return the values of ``chunk``, read lazily. Errors carry its row group and column.

    Values of PLAIN pages are returned without Arrow arrays.
    """
    return _read(file, chunk, plain_entries)


def read_encoded(file: InputFile, chunk: Chunk) -> ChunkEntries[Entries | EncodedValues]:
    """Return the values of ``chunk``, read lazily. PLAIN values may stay encoded."""
    return _read(file, chunk, encoded_entries)


def _read(file: InputFile, chunk: Chunk, plain: PlainReader[E]) -> ChunkEntries[E | Entries]:
    selection = _select(file, chunk)
    return ChunkEntries(
        source=selection.source,
        upper_bound=selection.upper_bound,
        entries=_located(chunk, _entries(selection, plain)),
    )


def read_sample(file: InputFile, chunk: Chunk) -> Iterator[Entries]:
    """Yield some values of ``chunk``: the values of its first data page that has any.

    If the page refers to a dictionary, only the entries that it refers to are taken: other entries
    need not be values of the chunk.  Raises UnsupportedFeatureError for pages of more than 64 MiB.
    """
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        if _is_empty(chunk):
            return
        repeated = chunk.leaf.is_repeated
        pages = read_pages(file, chunk) if repeated else read_first_pages(file, chunk)
        if sum(page.uncompressed_size for page in pages) > _SAMPLE_BYTES:
            raise UnsupportedFeatureError("pages of more than 64 MiB are not read for a sample")
        dictionary = [page for page in pages if page.is_dictionary]
        data = [page for page in pages if not page.is_dictionary and page.num_values > 0]
        rows = chunk.num_rows if repeated else sum(page.num_values for page in data)
        stored = StoredPages.of([*dictionary, *data])
        for array in _decode(chunk, stored, rows, has_dictionary=bool(dictionary)):
            yield as_entries(chunk.leaf, array)


def read_items(
    file: InputFile, chunk: Chunk, *, as_dictionaries: bool = False
) -> Iterator[pa.Array]:
    """Yield every item of ``chunk`` in order, with its nulls, from the data pages.

    With ``as_dictionaries``, texts stay dictionary arrays if all data pages refer to a dictionary:
    a few bytes can claim a long text for millions of rows.
    """
    from secure_bloom.parquet.arrow_decoding import decode_items

    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        if chunk.num_rows == 0:
            return
        # pyarrow would take an empty data page for the end of the chunk.
        pages = [page for page in read_pages(file, chunk) if page.is_dictionary or page.num_values]
        has_dictionary = any(page.is_dictionary for page in pages)
        is_kept = as_dictionaries and all(
            page.is_dictionary or page.encoding in DICTIONARY_ENCODINGS for page in pages
        )
        yield from decode_items(
            chunk.leaf,
            chunk.codec,
            pages,
            rows=chunk.num_rows,
            has_dictionary=has_dictionary,
            kept_dictionary=pages[0].uncompressed_size if is_kept and has_dictionary else None,
        )


def _select(file: InputFile, chunk: Chunk, *, takes_small: bool = True) -> _Selection:
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        if _is_empty(chunk):
            return _Selection(chunk=chunk)
        if claims_full_dictionary(chunk.meta_data):
            page = read_full_dictionary(file, chunk)
            if page is not None:
                return _Selection(chunk=chunk, dictionary=[page])
        start, length = chunk_extent(chunk)
        stored = file.view_at(start, length)
        small = _find_small_pages(chunk, stored) if takes_small else None
        if small is not None:
            return _select_small_pages(chunk, small)
        return _select_pages(chunk, read_pages(file, chunk, stored))


def _is_empty(chunk: Chunk) -> bool:
    """Return whether the chunk has no values. It may then have no pages, and offsets of 0."""
    values, rows = chunk.meta_data.num_values, chunk.num_rows
    # A null counts as a value, and so does an empty list.  With num_values of 0 a chunk counts as
    # empty, and its filter would rule out each value of its rows.
    if values < rows:
        raise FormatError(f"ColumnMetaData.num_values is {values}, the row group has {rows} rows")
    return values == 0


def _select_pages(chunk: Chunk, pages: Iterable[Page]) -> _Selection:
    # Empty data pages are left out: pyarrow takes one for the end of the chunk.
    pages = [page for page in pages if page.is_dictionary or page.num_values > 0]
    dictionary = [page for page in pages if page.is_dictionary]
    # Pages that refer to a dictionary which is not there must fail to decode, not count as empty.
    said = DICTIONARY_ENCODINGS if dictionary else frozenset[Encoding]()
    others = [page for page in pages if not page.is_dictionary and page.encoding not in said]
    # A row of a list may continue on the next page, so pages are decoded all together or not at
    # all.
    if others and chunk.leaf.is_repeated:
        others = [page for page in pages if not page.is_dictionary]
    return _Selection(chunk=chunk, dictionary=dictionary, data=others)


def _find_small_pages(chunk: Chunk, stored: memoryview) -> list[PageRows] | None:
    """Return all pages of the chunk, or None unless it has many small pages."""
    found: list[PageRows] = []
    if chunk.meta_data.num_values < FIRST_PAGES:
        return None
    with suppress(SecureBloomError):
        for rows in walk_rows(chunk, lambda start, _: stored[start:], len(stored)):
            count = len(rows.numbers)
            values = rows.values[rows.is_data].sum()
            if not found and (count < FIRST_PAGES or values >= _FEW_VALUES * count):
                return None
            found.append(rows)
        return found
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SmallPages:
    """Data pages that are decoded together: the pages of ``rows`` at the given positions."""

    rows: PageRows
    positions: NDArray[np.intp]

    @property
    def values(self) -> int:
        return int(self.rows.values[self.positions].sum())

    @property
    def stored(self) -> StoredPages:
        breaks = np.flatnonzero(np.diff(self.positions) > 1) + 1
        runs = np.split(self.positions, breaks)
        return StoredPages.joined([self.rows.stored(int(it[0]), int(it[-1]) + 1) for it in runs])


def _select_small_pages(chunk: Chunk, found: Sequence[PageRows]) -> _Selection:
    """Select the pages of a chunk whose values are needed, to be decoded in groups of pages."""
    has_dictionary = not found[0].is_data[0]
    dictionary = [first_page(chunk, found[0].view)] if has_dictionary else []
    data = [rows.is_data & (rows.values > 0) for rows in found]
    said = list(DICTIONARY_ENCODINGS) if has_dictionary else []
    others = [own & ~np.isin(it.encodings, said) for own, it in zip(data, found, strict=True)]
    if chunk.leaf.is_repeated and any(own.any() for own in others):
        others = data
    small = [
        _SmallPages(rows=rows, positions=group)
        for own, rows in zip(others, found, strict=True)
        for group in _groups_of(np.flatnonzero(own), rows)
    ]
    return _Selection(chunk=chunk, dictionary=dictionary, small=small)


def _groups_of(positions: NDArray[np.intp], rows: PageRows) -> list[NDArray[np.intp]]:
    """Return the positions of wanted pages in groups that are decoded together."""
    groups = rows.starts[positions] // _GROUP_BYTES
    return np.split(positions, np.flatnonzero(np.diff(groups)) + 1) if len(positions) else []


def _whole(selection: _Selection) -> Iterator[pa.Array]:
    """Yield the values of a chunk whose pages are decoded all together."""
    every = StoredPages.joined(
        [
            StoredPages.of([*selection.dictionary, *selection.data]),
            *(pages.stored for pages in selection.small),
        ]
    )
    chunk, has_dictionary = selection.chunk, bool(selection.dictionary)
    return _decode(chunk, every, chunk.num_rows, has_dictionary=has_dictionary)


def _entries(selection: _Selection, plain: PlainReader[E]) -> Iterator[E | Entries]:
    chunk = selection.chunk
    if selection.is_whole:
        yield from (as_entries(chunk.leaf, array) for array in _whole(selection))
        return
    left: list[Page] = []
    for page in [*selection.dictionary, *selection.data]:
        # Threads share one budget of memory, so large pages of several files wait for one another.
        with reserved(page.uncompressed_size):
            entries = plain(chunk.leaf, chunk.codec, page)
            if entries is None:
                left.append(page)
            else:
                yield entries
    dictionary = _dictionary_arrays(chunk, [page for page in left if page.is_dictionary])
    groups = map(StoredPages.of, _groups(page for page in left if not page.is_dictionary))
    data = _flat_arrays(chunk, chain(groups, (pages.stored for pages in selection.small)))
    for array in chain(dictionary, data):
        yield as_entries(chunk.leaf, array)


def _dictionary_arrays(chunk: Chunk, pages: Iterable[Page]) -> Iterator[pa.Array]:
    for page in pages:
        from secure_bloom.parquet.arrow_decoding import decode_dictionary

        yield from decode_dictionary(chunk.leaf, chunk.codec, page)


def _flat_arrays(chunk: Chunk, groups: Iterable[StoredPages]) -> Iterator[pa.Array]:
    for group in groups:
        yield from _decode(chunk, group, group.values, has_dictionary=False)


def _decode(
    chunk: Chunk, pages: StoredPages, rows: int, *, has_dictionary: bool
) -> Iterator[pa.Array]:
    if rows == 0:
        return
    codec = chunk.codec
    if chunk.leaf.is_repeated:
        # Lists are not cut, and a run of a few bytes can be a list of a billion values.
        refuse_beyond(pages.values * _LEAST_VALUE, "the column's lists")
    from secure_bloom.parquet.arrow_decoding import decode_stored

    yield from decode_stored(chunk.leaf, codec, pages, rows=rows, has_dictionary=has_dictionary)


def _groups(pages: Iterable[Page]) -> Iterator[list[Page]]:
    group: list[Page] = []
    size = 0
    for page in pages:
        group.append(page)
        size += len(page.stored)
        # Counted as stored: what they take decoded is bounded by the budget.
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _located(chunk: Chunk, values: Iterator[T]) -> Iterator[T]:
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        yield from values
