"""Find the pages of a column chunk many at a time, as rows of numbers.

An object for each page takes longer than pyarrow needs to decode a small page.  So the headers of
many pages are read in one call of the C extension, which enters a row of numbers for each; the
slots of a row are in :mod:`.chunk_fields`.  The modules of an encrypted chunk are found by their
length fields, and their headers are decrypted in one pass.

    for rows in walk_rows(chunk, lambda start, _: stored[start:], len(stored)):
        rows.encodings, rows.values

Only usual pages are taken.  An error here says nothing about a page: the caller reads the chunk by
:mod:`.pages`, which reads all that the format allows, or raises the error that names the mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secure_bloom.encryption.cipher import LENGTH_SIZE, NONCE_SIZE, TAG_SIZE, ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from secure_bloom.parquet.chunk_fields import (
    PAGE_BODY,
    PAGE_COUNTS,
    PAGE_ENCODING,
    PAGE_HEADER,
    PAGE_IS_COMPRESSED,
    PAGE_PLAIN_SIZE,
    PAGE_SLOTS,
    PAGE_START,
    PAGE_STORED_SIZE,
    PAGE_TYPE,
    PAGE_VALUES,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.memory_files import StoredPages, plain_pages
from secure_bloom.parquet.pages import check_data_follows, has_dictionary_offset
from secure_bloom.parquet.structures.metadata import CompressionCodec, PageType
from secure_bloom.running.memory_budget import memory_budget

#: Gives the chunk's bytes from an offset on: at least as many as wanted.
View = Callable[[int, int], memoryview]
Numbers = NDArray[np.int64]

#: Pages that are found in the first call, and in each later one. Most chunks have few.
FIRST_PAGES, _MORE_PAGES = 256, 16 * 1024
#: Bytes in which a page's header is looked for: only long statistics make it longer than the first.
_WINDOWS = (1024, 64 * 1024, 4 * 1024 * 1024)
#: The length field of a module, and the least bytes of one with a tag and of one without.
_LENGTH, _LEAST_BODY = struct.Struct("<I"), LENGTH_SIZE + NONCE_SIZE
_LEAST_HEADER = _LEAST_BODY + TAG_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRows:
    """Consecutive pages of a chunk, with a row of numbers for each.

    ``starts``, ``bodies`` and ``ends`` are offsets in ``view``.  ``headers`` has the decrypted
    headers of an encrypted chunk, whose bodies start and end as modules do.
    """

    chunk: Chunk
    view: memoryview = field(repr=False)
    numbers: Numbers = field(repr=False)
    first_ordinal: int
    headers: list[bytes] = field(repr=False)

    @property
    def is_data(self) -> NDArray[np.bool_]:
        """Which pages are data pages. Only the first page of a chunk may be a dictionary page."""
        return np.asarray(self.numbers[:, PAGE_TYPE] != PageType.DICTIONARY_PAGE)

    @property
    def values(self) -> Numbers:
        """The number of values of each page, with nulls, or the entries of a dictionary page."""
        return self.numbers[:, PAGE_VALUES]

    @property
    def encodings(self) -> Numbers:
        """The number of each page's encoding."""
        return self.numbers[:, PAGE_ENCODING]

    @property
    def plain_sizes(self) -> Numbers:
        """The size of each page's body without compression."""
        return self.numbers[:, PAGE_PLAIN_SIZE]

    @property
    def starts(self) -> Numbers:
        """Where the header of each page starts."""
        return self.numbers[:, PAGE_START]

    @property
    def ends(self) -> Numbers:
        """Where the body of each page ends."""
        return self.numbers[:, PAGE_BODY] + self.numbers[:, PAGE_STORED_SIZE]

    def stored(self, first: int, last: int) -> StoredPages:
        """Return consecutive data pages, without the one at ``last``, as they are stored in clear.

        Raises IntegrityError if a page does not authenticate.
        """
        rows = slice(first, last)
        content: bytes | memoryview
        if self.chunk.cipher is None:
            content = self.view[int(self.starts[first]) : int(self.ends[last - 1])]
        else:
            content = self._decrypted(self.chunk.cipher, rows)
        return StoredPages(
            # Headers and bodies follow each other as they do in a file.
            pages=[(b"", content)],
            values=int(self.values[rows].sum()),
            encodings=frozenset(self.encodings[rows].tolist()),
            largest=int(self.numbers[rows, PAGE_PLAIN_SIZE].max()),
        )

    def _decrypted(self, cipher: ColumnCipher, rows: slice) -> bytes:
        # The dictionary page has no ordinal.
        first = self.first_ordinal + rows.start - int(not self.is_data[0])
        ordinals = range(first, first + rows.stop - rows.start)
        starts = (self.numbers[rows, PAGE_BODY] + LENGTH_SIZE).tolist()
        modules = zip(starts, self.ends[rows].tolist(), strict=True)
        bodies = cipher.open_pages(ModuleType.DATA_PAGE, self.view, modules, ordinals)
        sizes = zip(*self.numbers[rows, : PAGE_STORED_SIZE + 1].T.tolist(), strict=True)
        return b"".join(plain_pages(self.headers[rows], sizes, bodies))


def walk_rows(chunk: Chunk, view: View, length: int) -> Iterator[PageRows]:
    """Yield the pages that hold the chunk's ``num_values`` values, in order.

    The chunk has ``length`` bytes.  Raises SecureBloomError for a page that must be read by itself,
    and where the pages contradict the metadata.
    """
    find = _in_clear if chunk.cipher is None else _encrypted
    values, position, ordinal, most = chunk.meta_data.num_values, 0, 0, FIRST_PAGES
    while values > 0:
        search = _Search(chunk, length - position, values, ordinal, most, is_first=position == 0)
        rows = None
        for window in _WINDOWS:
            rows = rows or find(search, view(position, min(window, search.room)))
        if rows is None:
            raise FormatError("a page must be read by itself")
        _check_dictionary(search, rows)
        yield rows
        values -= int(rows.values[rows.is_data].sum())
        position += int(rows.ends[-1])
        # The ordinal in the AAD counts data pages alone (Encryption.md 4.4.2).
        ordinal += int(rows.is_data.sum())
        most = _MORE_PAGES
    if values < 0:
        raise FormatError("the pages hold more values than ColumnMetaData.num_values")


@dataclass(frozen=True, slots=True)
class _Search:
    """Where pages are looked for: ``room`` bytes and ``values`` values of the chunk are left."""

    chunk: Chunk
    room: int
    values: int
    ordinal: int
    most: int
    is_first: bool

    @property
    def names_dictionary(self) -> bool:
        return self.is_first and has_dictionary_offset(self.chunk)


def _check_dictionary(search: _Search, rows: PageRows) -> None:
    """Raise FormatError for a dictionary page that is not the first, or not where it is named."""
    found = np.flatnonzero(~rows.is_data).tolist()
    # Some writers do not set dictionary_page_offset; the type of an encrypted page follows from it.
    may_begin = search.names_dictionary or (search.is_first and search.chunk.cipher is None)
    if found != [0] if search.names_dictionary else found not in ([], [0] if may_begin else []):
        raise FormatError("a dictionary page is where none is expected")
    if search.names_dictionary:
        check_data_follows(search.chunk.meta_data, int(rows.ends[0]))


def _in_clear(search: _Search, view: memoryview) -> PageRows | None:
    native, meta_data = extension.native, search.chunk.meta_data
    if native is None or search.room <= 0:
        return None
    is_stored = meta_data.codec == CompressionCodec.UNCOMPRESSED
    numbers = np.empty((search.most, PAGE_SLOTS), np.int64)
    count = native.walk_pages(
        view, PAGE_HEADER, search.room, search.values, memory_budget(), is_stored, numbers
    )
    return _rows(search, view, numbers[:count], []) if count else None


def _rows(search: _Search, view: memoryview, numbers: Numbers, headers: list[bytes]) -> PageRows:
    return PageRows(
        chunk=search.chunk,
        view=view,
        numbers=numbers,
        first_ordinal=search.ordinal,
        headers=headers,
    )


def _encrypted(search: _Search, view: memoryview) -> PageRows | None:
    native, column = extension.native, search.chunk.cipher
    bounds = [] if native is None or column is None else _modules(search, view)
    if column is None or not bounds:
        return None
    starts, bodies, ends = bounds[:-1:2], bounds[1::2], bounds[2::2]
    headers = _opened_headers(search, column, view, starts, bodies)
    numbers = np.empty((len(headers), PAGE_SLOTS), np.int64)
    each = np.concatenate([[0], np.cumsum([len(header) for header in headers])])
    if native.read_fields(b"".join(headers), each, True, PAGE_HEADER, PAGE_SLOTS, numbers) < 0:
        raise FormatError("a page header is damaged or unusual")
    # parquet-java pads structures that it encrypts.
    if (numbers[:, PAGE_BODY] < each[1:]).any():
        lengths = (numbers[:, PAGE_BODY] - each[:-1]).tolist()
        headers = [header[:length] for header, length in zip(headers, lengths, strict=True)]
    numbers[:, PAGE_START], numbers[:, PAGE_BODY] = starts, bodies
    if not _are_usual(search, column, numbers, np.array(ends) - numbers[:, PAGE_BODY]):
        raise FormatError("a page must be read by itself")
    return _rows(search, view, numbers, headers)


def _modules(search: _Search, view: memoryview) -> list[int]:
    """Return where the modules of pages start, a header and a body each, and where the last ends.

    Return an empty list if ``view`` does not hold a whole header.
    """
    bounds, at, held, length_at = [0], 0, len(view) - LENGTH_SIZE, _LENGTH.unpack_from
    while at <= held and len(bounds) <= 2 * search.most:
        at += LENGTH_SIZE + length_at(view, at)[0]
        if at > search.room:
            break
        bounds.append(at)
    # A header whose body is not found is left.
    bounds = bounds[: len(bounds) - (len(bounds) - 1) % 2]
    sizes = np.diff(bounds)
    if (sizes[::2] < _LEAST_HEADER).any() or (sizes[1::2] < _LEAST_BODY).any():
        raise FormatError("a module is too short")
    return bounds if len(bounds) > 1 else []


def _opened_headers(
    search: _Search, column: ColumnCipher, view: memoryview, starts: list[int], ends: list[int]
) -> list[bytes]:
    first: list[bytes] = []
    if search.names_dictionary:
        module = view[starts[0] : ends[0]]
        first.append(column.decrypt(ModuleType.DICTIONARY_PAGE_HEADER, module))
    begin = [start + LENGTH_SIZE for start in starts[len(first) :]]
    ordinals = range(search.ordinal, search.ordinal + len(begin))
    modules = zip(begin, ends[len(first) :], strict=True)
    return first + column.open_pages(ModuleType.DATA_PAGE_HEADER, view, modules, ordinals)


def _are_usual(search: _Search, column: ColumnCipher, numbers: Numbers, lengths: Numbers) -> bool:
    """Return whether every page has a known type, and the sizes that its header says.

    The counts of each kind of page move to the slots that they share, as ``walk_pages`` does it.
    """
    kinds, sizes = numbers[:, PAGE_TYPE], numbers[:, PAGE_PLAIN_SIZE]
    for kind, slot in PAGE_COUNTS.items():
        own = kinds == kind
        numbers[own, PAGE_VALUES : PAGE_ENCODING + 1] = numbers[own, slot : slot + 2]
    is_stored = (kinds == PageType.DATA_PAGE_V2) & (numbers[:, PAGE_IS_COMPRESSED] == 0)
    if search.chunk.meta_data.codec == CompressionCodec.UNCOMPRESSED:
        is_stored[:] = True
    fits = (lengths - column.page_overhead == sizes) | ~is_stored
    return bool(
        np.isin(kinds, list(PAGE_COUNTS)).all()
        and (numbers[:, PAGE_VALUES : PAGE_ENCODING + 1] >= 0).all()
        and (numbers[:, PAGE_STORED_SIZE] == lengths).all()
        and (sizes >= 0).all()
        and (sizes <= memory_budget()).all()
        and fits.all()
    )
