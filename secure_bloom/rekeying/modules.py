"""One module from one protection into another: pages, indexes, filters.

Nothing is decoded or decompressed.  A page header changes in two fields, its size as stored and the
checksum over the bytes as stored; everything else passes as it is.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Final

from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, IntegrityError, UnsupportedFeatureError
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.structures.metadata import PageHeader, PageType
from secure_bloom.parquet.structures.splices import i32, set_fields, splice
from secure_bloom.parquet.structures.wire_fields import find_fields

_COMPRESSED_PAGE_SIZE: Final = PageHeader.compressed_page_size.id
_CRC: Final = PageHeader.crc.id
_HEADER_TYPES = {True: ModuleType.DICTIONARY_PAGE_HEADER, False: ModuleType.DATA_PAGE_HEADER}
_BODY_TYPES = {True: ModuleType.DICTIONARY_PAGE, False: ModuleType.DATA_PAGE}


def moved_page(page: Page, new: ColumnCipher | None) -> tuple[bytes, bytes]:
    """Return header and body of ``page`` as they are stored under ``new``, None for in clear."""
    # Modules of the format are numbered 0 to 9, and none of them is an index page (Encryption.md
    # 4.4.2).
    if page.type == PageType.INDEX_PAGE:
        raise UnsupportedFeatureError("an index page, which encryption has no module for")
    _check_sum(page)
    body = _sealed_body(page, new)
    return _sealed_header(page, new, body), body


def _check_sum(page: Page) -> None:
    """Raise IntegrityError for a body without a tag whose checksum shows damage.

    Its new checksum, or its new tag, would pass it off as whole.
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
    """Raise IntegrityError for a body that should have no tag and has a right one.

    The algorithm's id is in clear (Encryption.md 5.4): exchanged, AES_GCM_V1 would be decrypted
    to noise, and the noise sealed.
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
    """Return an index in clear, with whatever a writer padded it with."""
    return stored if old is None else old.decrypt(module_type, stored)


def sealed_module(plain: bytes, new: ColumnCipher | None, module_type: ModuleType) -> bytes:
    """Return the mirror of :func:`opened_module`; in clear nothing may follow a structure."""
    if new is None:
        return plain[: find_fields(plain).stop + 1]
    return new.encrypt(module_type, plain)


def moved_filter(stored: bytes, old: ColumnCipher | None, new: ColumnCipher | None) -> bytes:
    """Return a Bloom filter, header and bitset, under another protection."""
    if old is None:
        length = find_fields(stored).stop + 1
        header, bitset = stored[:length], stored[length:]
    else:
        # Two frames; only the length field of the first tells where the second begins.
        length = cipher.frame_length(stored)
        header = old.decrypt(ModuleType.BLOOM_FILTER_HEADER, stored[:length])
        bitset = old.decrypt(ModuleType.BLOOM_FILTER_BITSET, stored[length:])
    sealed_header = sealed_module(header, new, ModuleType.BLOOM_FILTER_HEADER)
    if new is None:
        return sealed_header + bitset
    return sealed_header + new.encrypt(ModuleType.BLOOM_FILTER_BITSET, bitset)
