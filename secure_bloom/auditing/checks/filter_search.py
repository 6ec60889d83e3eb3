"""Search for Bloom filters and pages in clear by their bytes alone, as anyone can.

    15 <numBytes> 1c 1c 00 00 1c 1c 00 00 1c 1c 00 00 00 | bitset

    15 <type> 15 <size> 15 <stored size> [15 <crc>] <field 5, 7 or 8> 15 <values> 15 <encoding> ...

The first form is the header of a filter in Thrift's compact protocol: there is only one algorithm,
hash and compression.  Field 1 is a zigzag varint; fields 2 to 4 are unions of empty structures.
Readers skip fields that they do not know, so a header may have unknown fields too, anywhere.  The
second form is the header of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from secure_bloom.bloom.split_block import BYTES_PER_BLOCK, SplitBlockBloomFilter
from secure_bloom.calling.options import MAX_BYTES
from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.wire_fields import (
    MAX_DEPTH,
    SKIP,
    WireType,
    field_header,
    read_varint,
)

#: Where a header may begin: its field 1 in short or long form, with the size of a bitset, which is
#: a positive multiple of 32.  The varint of an int of 32 bits has five bytes at most.
_START = re.compile(rb"(?:\x15|\x05\x02)(?=\x40|[\x80\xc0][\x80-\xff]{0,3}[\x01-\x7f])")
# Field by field, as far as every writer writes them: PageHeader, and in it DataPageHeader,
# DictionaryPageHeader or DataPageHeaderV2.
_INT = rb"\x15[\x80-\xff]{0,4}[\x00-\x7f]"
_SIZES = _INT * 2
_ENCODING, _LEVELS = rb"\x15[\x00\x04-\x14]", rb"\x15[\x06\x08]"
_PAGE = re.compile(
    rb"\x15(?:\x00%b(?:%b\x1c|\x2c)%b%b|\x04%b(?:%b\x3c|\x4c)%b\x15[\x00\x04]|\x06%b(?:%b\x4c|\x5c)%b%b)"
    % (
        *(_SIZES, _INT, _INT, _ENCODING + _LEVELS * 2),
        *(_SIZES, _INT, _INT),
        *(_SIZES, _INT, _INT * 3, _ENCODING),
    )
)
#: The header as every writer writes it.
HEADER_SIZE = 1 + 5 + 13
#: The longest header that is found.
LONGEST_HEADER = 512
#: Headers that may begin in one search.  Random bytes have one in 20,000 bytes.
_MOST_STARTS = 2_000
_NUM_BYTES, _UNIONS = 1, (2, 3, 4)


class CrowdedError(Exception):
    """More bytes could be headers of filters than are checked."""


def is_plain_filter(head: bytes, room: int) -> bool:
    """Return whether ``head`` begins with the header of a filter that ends within ``room``."""
    return _fits(_header(head), room)


def plain_filters(data: bytes, room: int) -> Iterator[int]:
    """Yield the offsets in ``data`` of filters that end within its first ``room`` bytes.

    Raises CrowdedError for bytes that were made to take long.
    """
    for n, found in enumerate(_START.finditer(data)):
        if n == _MOST_STARTS:
            raise CrowdedError
        start = found.start()
        if _fits(_header(data[start : start + LONGEST_HEADER]), room - start):
            yield start


def has_plain_page(data: bytes) -> bool:
    """Return whether the header of a page in clear is anywhere in ``data``."""
    return _PAGE.search(data) is not None


def begins_with_page(head: bytes) -> bool:
    """Return whether ``head`` begins with the header of a page in clear."""
    return _PAGE.match(head) is not None


def plain_filter(data: bytes) -> SplitBlockBloomFilter:
    """Return the filter at the start of ``data``."""
    num_bytes, end = _known(data)
    return SplitBlockBloomFilter.from_bytes(data[end : end + num_bytes])


def plain_filter_size(head: bytes) -> int:
    """Return the size, header included, of the filter that starts with ``head``."""
    return sum(_known(head))


#: The number of bytes of the bitset, and where the header ends.
_Header: TypeAlias = tuple[int, int]


def _known(head: bytes) -> _Header:
    found = _header(head[:LONGEST_HEADER])
    if found is None:
        raise FormatError("there is no Bloom filter in clear")
    return found


def _header(head: bytes) -> _Header | None:
    """Return the filter's size, and where its bits start, by the header. None without one."""
    try:
        fields, end = _fields(head, 0)
        kind, value = fields[_NUM_BYTES]
        is_header = kind == WireType.I32 and all(
            _has_first_branch(head, *fields[union]) for union in _UNIONS
        )
        return (_zigzag(read_varint(head, value)[0]), end) if is_header else None
    except (FormatError, IndexError, KeyError):
        return None


def _has_first_branch(head: bytes, kind: int, value: int) -> bool:
    """Return whether a union has its first branch, the only one that the format has."""
    return kind == WireType.STRUCT and _fields(head, value)[0][1][0] == WireType.STRUCT


def _fields(head: bytes, at: int) -> tuple[dict[int, tuple[int, int]], int]:
    """Return the type and the place of each field of a structure, and where the structure ends.

    Of a field that occurs twice the last one counts, as in most readers.
    """
    found: dict[int, tuple[int, int]] = {}
    field_id = 0
    while kind := head[at]:
        field_id, value = field_header(head, at, kind, field_id)
        found[field_id] = kind & 0x0F, value
        at = SKIP[kind & 0x0F](head, value, MAX_DEPTH)
    return found, at + 1


def _zigzag(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def _fits(found: _Header | None, room: int) -> bool:
    if found is None:
        return False
    num_bytes, end = found
    # Chance alone finds such bytes in large files: a size that no filter has rules most of them
    # out.
    is_size = 0 < num_bytes <= MAX_BYTES and num_bytes % BYTES_PER_BLOCK == 0
    return is_size and end + num_bytes <= room
