"""Find the pages of one column chunk one by one, and decrypt them module by module.

    plain:      PageHeader | body                      one page after the other
    encrypted:  PageHeader module | body module        types 5 and 3 (dictionary), 4 and 2 (data)

In a data page of version 2, parquet-java leaves the levels in clear before the body module. Arrow
encrypts the whole body.  Both are read.  A page's body stays compressed here.  Encryption.md 5.1.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.kernels import extension
from secure_bloom.parquet.chunk_fields import (
    PAGE_ENCODING,
    PAGE_HEADER,
    PAGE_LEVELS,
    PAGE_SLOTS,
    PAGE_START,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.structures.metadata import (
    ColumnMetaData,
    CompressionCodec,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    PageHeader,
    PageType,
)
from secure_bloom.parquet.structures.records import decode_record, known_member, measured_record
from secure_bloom.running.memory_budget import memory_budget, refuse_beyond
from secure_bloom.storage import InputFile


# Not frozen: one is made for every page that is read, and to make a frozen one takes longer.
@dataclass(slots=True, kw_only=True)
class Page:
    """One page: its header, and its body as stored (encrypted in an encrypted chunk).

    The first ``clear`` bytes of an encrypted body are not part of its module.  ``counts`` is the
    number of values and their encoding, and ``levels`` the encodings of definition and repetition
    levels of a page of version 1, if known. ``decoded`` is the header.  ``extent`` is where the
    page starts and ends in its chunk, if all pages of the chunk were walked.
    """

    type: int
    uncompressed_size: int
    encoded_header: bytes
    stored: memoryview
    clear: int = 0
    cipher: ColumnCipher | None = None
    ordinal: int | None = None
    counts: tuple[int, int] | None = None
    levels: tuple[int, int] | None = None
    decoded: PageHeader | None = None
    extent: tuple[int, int] = (0, 0)

    @property
    def header(self) -> PageHeader:
        """The header as a read-only record."""
        return self.decoded or decode_record(PageHeader, self.encoded_header)

    @property
    def is_dictionary(self) -> bool:
        """Whether this is the chunk's dictionary page."""
        return self.type == PageType.DICTIONARY_PAGE

    @property
    def num_values(self) -> int:
        """The number of values in the page, with nulls, or the entries of a dictionary page."""
        count = self.counts[0] if self.counts else self._detail.num_values
        # The number is signed in the header; negative ones would keep `walk` from its end.
        if count < 0:
            raise FormatError(f"a page says it has {count} values")
        return count

    @property
    def encoding(self) -> Encoding:
        """The encoding of the page's values."""
        number = self.counts[1] if self.counts else self._detail.encoding
        known = _ENCODINGS.get(number)
        if known is None:
            return known_member(Encoding, number, "PageHeader: encoding")
        return known

    def body(self) -> bytes | memoryview:
        """Return the page's body, decrypted and still compressed."""
        if self.cipher is None:
            return self.stored
        module_type = ModuleType.DICTIONARY_PAGE if self.is_dictionary else ModuleType.DATA_PAGE
        module = self.stored[self.clear :]
        # The AAD holds the page's ordinal (Encryption.md 4.4.2), so pages of a chunk cannot be
        # exchanged for one another.
        plain = self.cipher.decrypt(module_type, module, page=self.ordinal)
        return bytes(self.stored[: self.clear]) + plain if self.clear else plain

    @property
    def level_encodings(self) -> tuple[int, int] | None:
        """The encodings of definition and repetition levels of a page of version 1."""
        if self.levels is not None and self.type == PageType.DATA_PAGE:
            return self.levels
        detail = self.header.data_page_header
        if detail is None:
            return None
        return detail.definition_level_encoding, detail.repetition_level_encoding

    @property
    def _detail(self) -> DataPageHeader | DataPageHeaderV2 | DictionaryPageHeader:
        header = self.header
        name = _DETAILS.get(header.type)
        detail = None if name is None else getattr(header, name)
        if detail is None:
            kind = known_member(PageType, header.type, "PageHeader: type")
            raise FormatError(f"PageHeader lacks the header of its type, {kind.name}")
        # The type is a text: to join types takes longer than all else here.
        return cast("DataPageHeader | DataPageHeaderV2 | DictionaryPageHeader", detail)


# These are looked at for every page, and a dict of numbers is faster than an enumeration.
_ENCODINGS: dict[int, Encoding] = {encoding.value: encoding for encoding in Encoding}
#: Page type -> the field of PageHeader that holds its details.
_DETAILS: dict[int, str] = {
    PageType.DATA_PAGE: "data_page_header",
    PageType.DATA_PAGE_V2: "data_page_header_v2",
    PageType.DICTIONARY_PAGE: "dictionary_page_header",
}


#: The type of a page header module, and the page ordinal in its AAD.
Place = tuple[ModuleType, int | None]
#: The page at a position in its chunk that is encrypted as one of a place; and where it ends.
PageReader = Callable[[int, Place], tuple[Page, int]]
#: How many more pages with the very same header as a data page follow from a position on, one every
#: this many bytes, and at most this many pages.
Repeats = Callable[[Page, int, int, int], int]


def read_pages(file: InputFile, chunk: Chunk, stored: memoryview | None = None) -> list[Page]:
    """Return all pages of the chunk in the file's order, the dictionary page first.

    ``stored`` has the chunk's bytes. Without it they are read. The pages hold them, and bodies are
    decrypted when they are accessed. Raises FormatError if the pages do not hold exactly
    ``num_values`` values.
    """
    start, length = chunk_extent(chunk)
    try:
        return pages_in(chunk, file.view_at(start, length) if stored is None else stored)
    except FormatError:
        # The sizes are tried as they are said first: most files say them rightly.
        more = min(length + _FORGOTTEN, file.size - start)
        with suppress(FormatError):
            pages = pages_in(chunk, file.view_at(start, more))
            # Only chunks of those writers are widened: the bytes after any other chunk are not its
            # own.
            if chunk.cipher is None and pages[0].is_dictionary:
                return pages
        raise


def pages_in(chunk: Chunk, stored: memoryview, budget: int | None = None) -> list[Page]:
    """Return the pages of a chunk whose bytes are ``stored``, as :func:`read_pages` does.

    ``budget`` is the memory budget, if the caller knows it.
    """
    usual = _usual_pages(chunk, stored, budget)
    return list(walk(chunk, _reader(chunk, stored))) if usual is None else usual


def _usual_pages(chunk: Chunk, stored: memoryview, budget: int | None) -> list[Page] | None:
    """Return the pages of a chunk in clear, if one call of the extension finds all of them.

    Return None if :func:`walk` must check the pages one by one, or would raise an error.
    """
    if extension.native is None or chunk.cipher is not None or not len(stored):
        return None
    meta_data, names_dictionary = chunk.meta_data, has_dictionary_offset(chunk)
    first = None if names_dictionary else 0
    found = _found_pages(chunk, stored, len(stored), first, budget)
    pages, values = [page for _, page, _ in found], 0
    for page in pages:
        if page.counts is not None and page.type != PageType.DICTIONARY_PAGE:
            values += page.counts[0]
    if not pages or values != meta_data.num_values:
        return None
    if names_dictionary:
        check_data_follows(meta_data, found[0][2])
    return pages


def _found_pages(
    chunk: Chunk, stored: memoryview, room: int, ordinal: int | None, budget: int | None = None
) -> list[tuple[int, Page, int]]:
    """Return the usual pages at the start of ``stored``, each between its start and its end."""
    native: Any = extension.native
    meta_data, rows, found = chunk.meta_data, _ROWS[:], list[tuple[int, Page, int]]()
    is_stored = meta_data.codec == CompressionCodec.UNCOMPRESSED
    limit = memory_budget() if budget is None else budget
    wanted = meta_data.num_values
    count = native.walk_pages(stored, PAGE_HEADER, room, wanted, limit, is_stored, rows)
    for row in range(0, PAGE_SLOTS * count, PAGE_SLOTS):
        kind, size, length, values, encoding = rows[row : row + PAGE_ENCODING + 1]
        start, body = rows[row + PAGE_START : row + PAGE_SLOTS]
        page = Page(
            type=kind,
            uncompressed_size=size,
            encoded_header=bytes(stored[start:body]),
            stored=stored[body : body + length],
            ordinal=ordinal,
            counts=(values, encoding),
            levels=(rows[row + PAGE_LEVELS], rows[row + PAGE_LEVELS + 1]),
            extent=(start, body + length),
        )
        found.append((start, page, body + length))
        # As in `walk`: the ordinal counts data pages alone.
        ordinal = (ordinal or 0) + (kind != PageType.DICTIONARY_PAGE)
    return found


#: Some writers left the dictionary page's header out of total_compressed_size (PARQUET-816).  If a
#: chunk with a dictionary ends too early, this number of bytes more is read, as parquet-cpp does.
_FORGOTTEN = 100


def read_first_pages(file: InputFile, chunk: Chunk) -> list[Page]:
    """Return the dictionary page, if there is one, and the first data page that has values.

    At most 32 MiB are read. Raises FormatError if the two pages are larger.
    """
    start, length = chunk_extent(chunk)
    for window in _WINDOWS:
        stored = memoryview(file.read_at(start, min(window, length)))
        try:
            return list(_up_to_data(walk(chunk, _reader(chunk, stored))))
        except FormatError:
            if window >= min(length, _WINDOWS[-1]):
                raise
    return []


#: Bytes to read: most first pages fit in the smaller window.
_WINDOWS = (256 * 1024, 32 * 1024 * 1024)


def _up_to_data(pages: Iterator[Page]) -> Iterator[Page]:
    for page in pages:
        if page.is_dictionary or page.num_values > 0:
            yield page
        if not page.is_dictionary and page.num_values > 0:
            return


def first_page(chunk: Chunk, stored: memoryview) -> Page:
    """Return the first page of a chunk that has values and whose bytes are ``stored``."""
    return next(walk(chunk, _reader(chunk, stored)))


def data_page(chunk: Chunk, stored: memoryview, ordinal: int) -> Page:
    """Return the chunk's data page of that ordinal, which is at the start of ``stored``."""
    return page_at(chunk, stored, len(stored), (ModuleType.DATA_PAGE_HEADER, ordinal))[0]


def chunk_extent(chunk: Chunk) -> tuple[int, int]:
    """Return the start of the chunk and its number of bytes, as its metadata says."""
    meta_data = chunk.meta_data
    length = meta_data.total_compressed_size
    starts = [meta_data.dictionary_page_offset or 0] if has_dictionary_offset(chunk) else []
    if has_data_page(chunk):
        starts.append(meta_data.data_page_offset)
    # A chunk without any page has no place: it gets the place where the first one could be.
    start = min(starts, default=4 if length == 0 else 0)
    # Before offset 4 is the magic, so no page can start there.
    if start < 4 or length < 0:
        raise FormatError(
            f"the column chunk starts at {start} and has {length} bytes, wanted a start from 4 on "
            "and a length from 0 on"
        )
    return start, length


def has_data_page(chunk: Chunk) -> bool:
    """Return whether the metadata say where the first data page is."""
    # pyarrow writes none for a row group without rows, and stores 0 for its place.
    return chunk.meta_data.num_values != 0 or chunk.meta_data.data_page_offset != 0


def has_dictionary_offset(chunk: Chunk) -> bool:
    """Return whether the metadata say where the dictionary page is."""
    # Some writers store 0 for "none".
    return (chunk.meta_data.dictionary_page_offset or 0) > 0


#: The dictionary page's: its AAD has no page ordinal.
DICTIONARY: Place = (ModuleType.DICTIONARY_PAGE_HEADER, None)


def _never(_page: Page, _position: int, _step: int, _most: int) -> int:
    return 0


def walk(chunk: Chunk, read: PageReader, repeats: Repeats = _never) -> Iterator[Page]:
    """Yield the pages of the chunk that hold its ``num_values`` values, one after the other.

    ``repeats`` finds consecutive data pages with the same bytes, which are yielded as the same
    object.
    """
    wanted, seen, position, ordinal = chunk.meta_data.num_values, 0, 0, 0
    expects_dictionary = has_dictionary_offset(chunk)
    while seen < wanted:
        place = DICTIONARY if expects_dictionary else (ModuleType.DATA_PAGE_HEADER, ordinal)
        # A page is decrypted as the type that its place calls for, so one put in another's place
        # fails.
        start = position
        page, position = read(start, place)
        page.extent = start, position
        if expects_dictionary:
            check_data_follows(chunk.meta_data, position)
        expects_dictionary = False
        # Reserved by the format and written by nobody; its ordinal counts no data page.
        if page.type == PageType.INDEX_PAGE:
            continue
        if page.is_dictionary:
            yield page
            continue
        values, step = page.num_values, position - start
        # No more than hold the values that are left: bytes after them are not read.
        most = (wanted - seen - 1) // max(values, 1)
        more = repeats(page, position, step, most)
        seen += (1 + more) * values
        position += more * step
        # The ordinal in the AAD counts data pages alone (Encryption.md 4.4.2).
        ordinal += 1 + more
        yield from repeat(page, 1 + more)
    if seen != wanted:
        raise FormatError(f"the pages hold {seen} values, ColumnMetaData.num_values is {wanted}")


def check_data_follows(meta_data: ColumnMetaData, length: int) -> None:
    """Raise FormatError unless the data pages follow the dictionary page that the footer names."""
    start, data = meta_data.dictionary_page_offset or 0, meta_data.data_page_offset
    # Readers that begin at data_page_offset would else see other pages than those that walk on from
    # the dictionary.
    if start < data != start + length:
        raise FormatError(
            f"the dictionary page ends at {start + length}, "
            f"ColumnMetaData.data_page_offset is {data}"
        )


def _reader(chunk: Chunk, stored: memoryview) -> PageReader:
    """Return the reader of pages for a chunk whose bytes are ``stored``."""
    finder = PageFinder(chunk)

    def read(position: int, place: Place) -> tuple[Page, int]:
        return finder.page(stored[position:], position, len(stored) - position, place)

    return read


class PageFinder:
    """Finds the pages of one chunk. The C extension finds many pages in clear at a time."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._found: dict[int, tuple[Page, int]] = {}

    def page(self, stored: memoryview, position: int, room: int, place: Place) -> tuple[Page, int]:
        """Return the page at ``position``, which ``stored`` starts with, and its end.

        The arguments are the same as for :func:`page_at`.
        """
        if extension.native is not None and self._chunk.cipher is None and room > 0:
            if position not in self._found:
                every = _found_pages(self._chunk, stored, room, place[1])
                self._found = {position + at: (page, position + end) for at, page, end in every}
            if position in self._found:
                return self._found[position]
        page, length = page_at(self._chunk, stored, room, place)
        return page, position + length


#: Room for pages of one call. A copy is made in a twentieth of the time that a new array takes.
_ROWS = array("q", bytes(8 * PAGE_SLOTS * 64))


def page_at(chunk: Chunk, stored: memoryview, room: int, place: Place) -> tuple[Page, int]:
    """Return the page at the start of ``stored``, and how many bytes of ``room`` it takes.

    If ``stored`` ends inside the page, the page has only a part of its body.
    """
    if room <= 0:
        raise FormatError("the pages end before ColumnMetaData.num_values is reached")
    header, encoded, body_start = _read_header(chunk, stored, place)
    clear, body_length = _body_sizes(chunk, header, stored, body_start, room)
    remaining = room - body_start
    if not 0 <= body_length <= remaining:
        raise FormatError(f"a page's body has {body_length} bytes, {remaining} remain in its chunk")
    page = Page(
        type=header.type,
        uncompressed_size=header.uncompressed_page_size,
        decoded=header,
        encoded_header=encoded,
        stored=stored[body_start : body_start + body_length],
        clear=clear,
        cipher=chunk.cipher,
        ordinal=place[1],
    )
    # The place decided the AAD with which the header was decrypted, so for an encrypted page type
    # and place cannot differ, unless a writer mixed them up.
    if chunk.cipher is not None and page.is_dictionary is not (place == DICTIONARY):
        raise UnsupportedFeatureError(
            "an encrypted dictionary page is where the metadata names none"
        )
    _check_sizes(chunk, header, body_length)
    return page, body_start + body_length


def _body_sizes(
    chunk: Chunk, header: PageHeader, stored: memoryview, start: int, room: int
) -> tuple[int, int]:
    """Return, for the body at ``start``, the bytes of levels in clear, and all bytes."""
    if chunk.cipher is None:
        return 0, header.compressed_page_size
    # The sizes of an encrypted page come from its module's length field: the header's size was
    # written in different ways (see _levels_in_clear), and both must agree in _check_sizes.
    clear = _levels_in_clear(header, stored[start:])
    return clear, clear + cipher.frame_length(stored, start + clear, room=room)


def _check_sizes(chunk: Chunk, header: PageHeader, length: int) -> None:
    """Raise FormatError if the sizes of a stored body differ from its header.

    Headers are authenticated in both algorithms, page bodies only by GCM.  An attacker may change
    the algorithm's id from AES_GCM_V1 to AES_GCM_CTR_V1, so that tags are not checked.  Then the
    body has the 16 bytes of a tag too many, which this check finds.
    """
    refuse_beyond(header.uncompressed_page_size, "a page")
    if length != header.compressed_page_size:
        raise FormatError(
            f"PageHeader.compressed_page_size is {header.compressed_page_size}, the page's body "
            f"has {length} bytes"
        )
    detail = header.data_page_header_v2
    is_stored = detail is not None and detail.is_compressed is False
    if chunk.meta_data.codec != CompressionCodec.UNCOMPRESSED and not is_stored:
        return
    # Only a page that is not compressed has a size that can be known without decoding it.
    text = length if chunk.cipher is None else length - chunk.cipher.page_overhead
    if text != header.uncompressed_page_size:
        raise FormatError(
            f"PageHeader.uncompressed_page_size is {header.uncompressed_page_size}, the page has "
            f"{text} bytes and is not compressed"
        )


def _levels_in_clear(header: PageHeader, stored: memoryview) -> int:
    """Return how many bytes of levels are in clear before the body's module: all levels, or 0.

    parquet-java leaves the levels in clear, Arrow does not. The bytes after the levels decide: if
    they are a module's length that fits the size in the header, the levels are in clear.
    """
    detail = header.data_page_header_v2
    if detail is None:
        return 0
    levels = detail.repetition_levels_byte_length + detail.definition_levels_byte_length
    # Both lengths are numbers of the header, and may be negative.
    if not 0 < levels <= len(stored) - cipher.LENGTH_SIZE:
        return 0
    start = levels + cipher.LENGTH_SIZE
    length = int.from_bytes(stored[levels:start], "little")
    return levels if start + length == header.compressed_page_size else 0


def _read_header(chunk: Chunk, stored: memoryview, place: Place) -> tuple[PageHeader, bytes, int]:
    """Return the header at the start of ``stored``, its clear bytes, and where the body starts."""
    if chunk.cipher is None:
        header, length = _measured_header(stored)
        return header, bytes(stored[:length]), length
    length = cipher.frame_length(stored)
    module_type, ordinal = place
    encoded = chunk.cipher.decrypt(module_type, stored[:length], page=ordinal)
    # Bytes after the structure are ignored: parquet-java pads structures that it encrypts.
    return decode_record(PageHeader, encoded), encoded, length


def _measured_header(stored: memoryview) -> tuple[PageHeader, int]:
    """Return the header at the start of ``stored``, and its length.

    A header is only long if it has statistics with long values.
    """
    for window in _HEADER_WINDOWS:
        try:
            return measured_record(PageHeader, stored[:window])
        except FormatError:
            if window >= len(stored):
                raise
    return measured_record(PageHeader, stored)


#: Bytes to decode a header from: decoding copies all that it is given, so few are tried first.
_HEADER_WINDOWS = (512, 64 * 1024)
