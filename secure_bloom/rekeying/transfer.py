"""Write the data of a file under another protection, part by part, and note the new places.

Opening and sealing a page takes less time than handing it to a thread.  So the pages of a file are
processed one after the other, while another thread writes the pages before.  Chunks that are in
clear before and after are copied unchanged.

Nothing is decoded or decompressed.  Two fields of a page header change: the stored size, and the
checksum over the stored bytes. Everything else stays unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, IntegrityError, UnsupportedFeatureError, located
from secure_bloom.parquet.pages import DICTIONARY, Page, has_dictionary_offset, page_at
from secure_bloom.parquet.structures.metadata import OffsetIndex, PageHeader, PageLocation, PageType
from secure_bloom.parquet.structures.splices import NewValue, Splice, i32, i64, set_fields, splice
from secure_bloom.parquet.structures.wire_fields import Field, find_fields, list_elements, number
from secure_bloom.rekeying.regions import Region, RegionKind
from secure_bloom.storage import InputFile
from secure_bloom.storage.rewritten_file import OldRange

_COMPRESSED_PAGE_SIZE: Final = PageHeader.compressed_page_size.id
_CRC: Final = PageHeader.crc.id
_HEADER_TYPES = {True: ModuleType.DICTIONARY_PAGE_HEADER, False: ModuleType.DATA_PAGE_HEADER}
_BODY_TYPES = {True: ModuleType.DICTIONARY_PAGE, False: ModuleType.DATA_PAGE}


def moved_page(page: Page, new: ColumnCipher | None) -> tuple[bytes, bytes]:
    """Return header and body of ``page``, encrypted with ``new``, or in clear without ``new``."""
    # Modules of the format are numbered 0 to 9, and none of them is an index page (Encryption.md
    # 4.4.2).
    if page.type == PageType.INDEX_PAGE:
        raise UnsupportedFeatureError("an index page, which encryption has no module for")
    _check_sum(page)
    body = _sealed_body(page, new)
    return _sealed_header(page, new, body), body


def _check_sum(page: Page) -> None:
    """Raise IntegrityError for a body without a tag whose checksum is wrong.

    A new checksum, or a new tag, would hide the damage.
    """
    found = page.header.crc
    # A tag says more than a checksum, and writers differ in what checksums of sealed bodies cover.
    has_tag = page.cipher is not None and not page.cipher.uses_ctr
    if found is None or has_tag:
        return
    # Thrift has signed numbers alone, so a large checksum reads as a negative one.
    if zlib.crc32(page.stored) != found % (1 << 32):
        raise IntegrityError("a page's checksum does not fit: its bytes were altered")


def _sealed_body(page: Page, new: ColumnCipher | None) -> bytes:
    _refuse_exchanged_algorithm(page)
    plain = memoryview(page.body())
    if new is None:
        return bytes(plain)
    levels = _levels(page)
    # Numbers of a header: a negative sum would cut the body from its end.
    if not 0 <= levels <= len(plain):
        raise FormatError(f"a page's levels take {levels} bytes, its body has {len(plain)}")
    # parquet-java reads the levels of a version 2 page in clear; Arrow seals them, and reads both.
    module_type = _BODY_TYPES[page.is_dictionary]
    module = new.encrypt(module_type, plain[levels:], page=page.ordinal)
    return bytes(plain[:levels]) + module if levels else module


def _refuse_exchanged_algorithm(page: Page) -> None:
    """Raise IntegrityError for a body that should have no tag but has a valid one.

    The algorithm's id is in clear (Encryption.md 5.4). If an attacker changed it from AES_GCM_V1
    to AES_GCM_CTR_V1, pages would be decrypted to noise, and the noise would be encrypted.
    """
    old = page.cipher
    if old is None or not old.uses_ctr:
        return
    try:
        replace(old, uses_ctr=False).decrypt(
            _BODY_TYPES[page.is_dictionary], page.stored[page.clear :], page=page.ordinal
        )
    except (IntegrityError, FormatError):
        # As it should be: no tag, or too short for one.
        return
    raise IntegrityError(
        "the file says AES_GCM_CTR_V1, its pages are of AES_GCM_V1: it was altered"
    )


def _levels(page: Page) -> int:
    detail = page.header.data_page_header_v2 if page.type == PageType.DATA_PAGE_V2 else None
    if detail is None:
        return 0
    return detail.repetition_levels_byte_length + detail.definition_levels_byte_length


def _sealed_header(page: Page, new: ColumnCipher | None, body: bytes) -> bytes:
    encoded = page.encoded_header
    fields = find_fields(encoded)
    # The size counts the frame of the module, and levels in clear before it: readers step by it.
    changes = {_COMPRESSED_PAGE_SIZE: i32(len(body))}
    if _CRC in fields.by_id:
        # The format's CRC is an unsigned number in a signed field.
        crc = zlib.crc32(body)
        changes[_CRC] = i32(crc - (1 << 32) if crc >> 31 else crc)
    if new is None:
        # parquet-java pads structures that it encrypts; in clear the body must follow at once.
        encoded = encoded[: fields.stop + 1]
    plain = splice(encoded, set_fields(encoded, fields, changes))
    if new is None:
        return plain
    return new.encrypt(_HEADER_TYPES[page.is_dictionary], plain, page=page.ordinal)


def opened_module(stored: bytes, old: ColumnCipher | None, module_type: ModuleType) -> bytes:
    """Decrypt the module of an index. Return it with any padding that its writer added."""
    return stored if old is None else old.decrypt(module_type, stored)


def sealed_module(plain: bytes, new: ColumnCipher | None, module_type: ModuleType) -> bytes:
    """Encrypt the module of an index under ``new``, or return it in clear if that is None.

    In clear, padding after the structure is removed.
    """
    if new is None:
        return plain[: find_fields(plain).stop + 1]
    return new.encrypt(module_type, plain)


def moved_filter(stored: bytes, old: ColumnCipher | None, new: ColumnCipher | None) -> bytes:
    """Return a Bloom filter, header and bitset, encrypted with ``new`` in place of ``old``.

    None means in clear.
    """
    if old is None:
        length = find_fields(stored).stop + 1
        header, bitset = stored[:length], stored[length:]
    else:
        # Two frames; only the length field of the first says where the second begins.
        length = cipher.frame_length(stored)
        header = old.decrypt(ModuleType.BLOOM_FILTER_HEADER, stored[:length])
        bitset = old.decrypt(ModuleType.BLOOM_FILTER_BITSET, stored[length:])
    sealed_header = sealed_module(header, new, ModuleType.BLOOM_FILTER_HEADER)
    if new is None:
        return sealed_header + bitset
    return sealed_header + new.encrypt(ModuleType.BLOOM_FILTER_BITSET, bitset)


#: A header is looked for in this number of bytes, and a longer one in 16 times as many.
_HEADER = 64 * 1024
#: Pages are read in steps of this number of bytes; a longer page is read whole.
_AHEAD = 2 * 1024 * 1024
_OFFSET: Final = PageLocation.offset.id
#: The new cipher of the chunk at two ordinals, None for in clear.
NewCipher = Callable[[int, int], ColumnCipher | None]


@dataclass(slots=True)
class NewPlaces:
    """The places of one chunk's parts in the new file: offsets and lengths in bytes.

    ``pages`` maps the old offset of each page to its new offset and size, header included.
    ``header_growth`` is the number of bytes by which all headers together have grown.
    """

    start: int = 0
    length: int = 0
    header_growth: int = 0
    dictionary: int | None = None
    first_data: int | None = None
    pages: dict[int, tuple[int, int]] = field(default_factory=dict)
    moved_by: int | None = None
    filter: tuple[int, int] | None = None
    column_index: tuple[int, int] | None = None
    offset_index: tuple[int, int] | None = None


class Transfer:
    """Processes the regions of one file once. Afterwards ``places`` is complete."""

    def __init__(self, file: InputFile, found: list[Region], new: NewCipher, start: int) -> None:
        self._file = file
        self._regions = found
        self._new = new
        self.position = start
        self.places: dict[tuple[int, int], NewPlaces] = {
            region.key: NewPlaces() for region in found
        }

    def parts(self) -> Iterator[bytes | OldRange]:
        """Yield the bytes of the new file between its magic and its footer."""
        for region in self._regions:
            chunk = region.chunk
            with located(row_group=chunk.row_group, column=chunk.leaf.name):
                for part in _PARTS[region.kind](self, region, self.places[region.key]):
                    self.position += part.length if isinstance(part, OldRange) else len(part)
                    yield part
                    # Like pages, a part is let go before the next one is worked out.
                    del part

    def _pages(self, region: Region, places: NewPlaces) -> Iterator[bytes | OldRange]:
        new = self._new(*region.key)
        places.start = self.position
        if new is None and region.chunk.cipher is None:
            # Copied as they lie, so their offset index is moved by one number and not page by page.
            places.moved_by = self.position - region.offset
            yield OldRange(region.offset, region.length)
        else:
            yield from self._moved_pages(region, places, new)
        places.length = self.position - places.start

    def _moved_pages(
        self, region: Region, places: NewPlaces, new: ColumnCipher | None
    ) -> Iterator[bytes]:
        for page, offset, old_header in stored_pages(self._file, region):
            at = self.position
            header, body = moved_page(page, new)
            places.pages[offset] = (at, len(header) + len(body))
            places.header_growth += len(header) - old_header
            # The metadata need the new offsets of these two pages.
            if page.is_dictionary:
                places.dictionary = at
            elif places.first_data is None:
                places.first_data = at
            yield header
            yield body
            # They may be large: they are let go before the next page is read.
            del page, body

    def _filter(self, region: Region, places: NewPlaces) -> Iterator[bytes | OldRange]:
        old, new = region.chunk.cipher, self._new(*region.key)
        if old is None and new is None:
            places.filter = (self.position, region.length)
            yield OldRange(region.offset, region.length)
            return
        stored = self._file.read_at(region.offset, region.length)
        moved = moved_filter(stored, old, new)
        places.filter = (self.position, len(moved))
        yield moved

    def _column_index(self, region: Region, places: NewPlaces) -> Iterator[bytes]:
        # Bounds of pages do not move with the pages: it is sealed anew as it is.
        sealed = self._index(region, ModuleType.COLUMN_INDEX, lambda plain: plain)
        places.column_index = (self.position, len(sealed))
        yield sealed

    def _offset_index(self, region: Region, places: NewPlaces) -> Iterator[bytes]:
        sealed = self._index(
            region, ModuleType.OFFSET_INDEX, lambda plain: _moved_locations(plain, places)
        )
        places.offset_index = (self.position, len(sealed))
        yield sealed

    def _index(
        self, region: Region, module_type: ModuleType, change: Callable[[bytes], bytes]
    ) -> bytes:
        stored = self._file.read_at(region.offset, region.length)
        plain = change(opened_module(stored, region.chunk.cipher, module_type))
        return sealed_module(plain, self._new(*region.key), module_type)


_PARTS: dict[RegionKind, Callable[[Transfer, Region, NewPlaces], Iterator[bytes | OldRange]]] = {
    RegionKind.PAGES: Transfer._pages,
    RegionKind.FILTER: Transfer._filter,
    RegionKind.COLUMN_INDEX: Transfer._column_index,
    RegionKind.OFFSET_INDEX: Transfer._offset_index,
}


def stored_pages(file: InputFile, region: Region) -> Generator[tuple[Page, int, int]]:
    """Yield each page with its offset and the bytes of its header.

    A page is read when it is yielded.
    """
    chunk, position, ordinal, values = region.chunk, 0, 0, 0
    window = _ReadAhead(file=file, region=region)
    place = DICTIONARY if has_dictionary_offset(chunk) else (ModuleType.DATA_PAGE_HEADER, 0)
    # To the end of the bytes, not of the values: all bytes of the chunk are sealed anew, or
    # refused.
    while position < region.length:
        page, length = _stored_page(window, position, place)
        header = length - len(page.stored)
        if page.is_dictionary and place != DICTIONARY:
            # A chunk in clear may have a dictionary page that its metadata do not name.  Its header
            # shows it. Sealed, it is a module whose AAD has no page ordinal (Encryption.md 4.4.2).
            page = replace(page, ordinal=None)
        yield page, region.offset + position, header
        position += length
        if not page.is_dictionary:
            ordinal += 1
            values += page.num_values
        # It may be large: it is let go before the next one is read.
        del page
        place = (ModuleType.DATA_PAGE_HEADER, ordinal)
    # Values are counted here, too: pages that were cut off, or one too many, would be sealed and
    # pass for genuine.
    wanted = chunk.meta_data.num_values
    if values != wanted:
        raise FormatError(f"the pages hold {values} values, ColumnMetaData.num_values is {wanted}")


@dataclass(slots=True, kw_only=True)
class _ReadAhead:
    """Bytes of a region that were read ahead. The next pages are taken from them."""

    file: InputFile
    region: Region
    start: int = 0
    stored: memoryview = field(default_factory=lambda: memoryview(b""))

    def at(self, position: int, least: int) -> memoryview:
        """Return the bytes from a position in the region: at least ``least``, or all the rest."""
        room = self.region.length - position
        if self.start + len(self.stored) - position < min(least, room):
            length = min(max(least, _AHEAD), room)
            # Let go before the next bytes are read: memory holds one window, not two.
            self.stored = memoryview(b"")
            self.stored = memoryview(self.file.read_at(self.region.offset + position, length))
            self.start = position
        return self.stored[position - self.start :]


def _stored_page(
    window: _ReadAhead, position: int, place: tuple[ModuleType, int | None]
) -> tuple[Page, int]:
    room, least = window.region.length - position, _HEADER
    while True:
        stored = window.at(position, least)
        try:
            page, length = page_at(window.region.chunk, stored, room, place)
        # A header that is cut off by the end of what was read looks damaged: more is read.
        except FormatError:
            if len(stored) == room:
                raise
            least = 16 * len(stored)
            continue
        if length <= len(stored):
            return page, length
        least = length


def _moved_locations(plain: bytes, places: NewPlaces) -> bytes:
    """Return an offset index whose pages have moved."""
    changes: list[Splice] = []
    locations = find_fields(plain).by_id.get(OffsetIndex.page_locations.id)
    for start, _ in [] if locations is None else list_elements(plain, locations):
        fields = find_fields(plain, start)
        changes += set_fields(plain, fields, _moved_location(plain, fields.by_id, places))
    return splice(plain, changes)


def _moved_location(
    plain: bytes, fields: dict[int, Field], places: NewPlaces
) -> dict[int, NewValue | None]:
    offset = number(plain, fields.get(_OFFSET))
    if places.moved_by is not None:
        return {_OFFSET: i64(offset + places.moved_by)}
    # Readers would take other bytes for a page, so a wrong index must not be carried over.
    if offset not in places.pages:
        raise FormatError(f"the offset index names a page at {offset}, where none starts")
    at, length = places.pages[offset]
    return {_OFFSET: i64(at), PageLocation.compressed_page_size.id: i32(length)}
