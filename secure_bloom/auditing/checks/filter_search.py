"""Search for Bloom filters and pages in clear by their bytes alone, as anyone can.

    15 <numBytes> 1c 1c 00 00 1c 1c 00 00 1c 1c 00 00 00 | bitset

    15 <type> 15 <size> 15 <stored size> [15 <crc>] <field 5, 7 or 8> 15 <values> 15 <encoding> ...

Thrift's compact protocol always writes this header, because there is only one algorithm, hash and
compression.  Field 1 is a zigzag varint; fields 2 to 4 are unions of empty structures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from secure_bloom.bloom.split_block import BYTES_PER_BLOCK, SplitBlockBloomFilter
from secure_bloom.calling.options import MAX_BYTES
from secure_bloom.errors import FormatError

# The varint of an int of 32 bits has five bytes at most, and only its last byte is below 0x80.
_HEADER = re.compile(rb"\x15([\x80-\xff]{0,4}[\x00-\x7f])(?:\x1c\x1c\x00\x00){3}\x00")
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
#: The longest header that can match.
HEADER_SIZE = 1 + 5 + 13


def is_plain_filter(head: bytes, room: int) -> bool:
    """Return whether ``head`` begins with the header of a filter that ends within ``room``."""
    found = _HEADER.match(head)
    return found is not None and _fits(found, room)


def plain_filters(data: bytes, room: int) -> Iterator[int]:
    """Yield the offsets in ``data`` of filters that end within its first ``room`` bytes."""
    return (found.start() for found in _HEADER.finditer(data) if _fits(found, room))


def has_plain_page(data: bytes) -> bool:
    """Return whether the header of a page in clear is anywhere in ``data``."""
    return _PAGE.search(data) is not None


def begins_with_page(head: bytes) -> bool:
    """Return whether ``head`` begins with the header of a page in clear."""
    return _PAGE.match(head) is not None


def plain_filter(data: bytes) -> SplitBlockBloomFilter:
    """Return the filter at the start of ``data``."""
    found = _HEADER.match(data)
    if found is None:
        raise FormatError("there is no Bloom filter in clear")
    return SplitBlockBloomFilter.from_bytes(data[found.end() :][: _zigzag(found[1])])


def plain_filter_size(head: bytes) -> int:
    """Return the size, header included, of the filter that starts with ``head``."""
    found = _HEADER.match(head)
    if found is None:
        raise FormatError("there is no Bloom filter in clear")
    return found.end() + _zigzag(found[1])


def _fits(found: re.Match[bytes], room: int) -> bool:
    num_bytes = _zigzag(found[1])
    return (
        # Chance alone finds such bytes in large files: a size that no filter has rules most of them
        # out.
        0 < num_bytes <= MAX_BYTES
        and num_bytes % BYTES_PER_BLOCK == 0
        and found.end() + num_bytes <= room
    )


def _zigzag(varint: bytes) -> int:
    number = sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(varint))
    return (number >> 1) ^ -(number & 1)
