"""Decompress a page's body to exactly the number of bytes that the page's header promises.

pyarrow's own function fills a buffer of the size that it is given, and does not say how much of it
the codec wrote.  The rest would be uninitialised memory.  parquet-format, "Compression".
"""

from __future__ import annotations

import pyarrow as pa

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.metadata import CompressionCodec

_NAMES = {
    CompressionCodec.SNAPPY: "snappy",
    CompressionCodec.GZIP: "gzip",
    CompressionCodec.BROTLI: "brotli",
    CompressionCodec.ZSTD: "zstd",
    CompressionCodec.LZ4_RAW: "lz4_raw",
}
#: The last field of a gzip member: the size of its text, little-endian (RFC 1952, 2.3.1).
_ISIZE = 4


def is_decompressed_here(codec: CompressionCodec) -> bool:
    """Return whether :func:`decompressed` knows the codec."""
    return codec == CompressionCodec.UNCOMPRESSED or codec in _NAMES


def decompressed(
    codec: CompressionCodec, body: bytes | memoryview, size: int
) -> bytes | memoryview | pa.Buffer:
    """Return the decompressed body. Raises FormatError unless it has ``size`` bytes."""
    if codec == CompressionCodec.UNCOMPRESSED:
        # Checked although nothing is decoded: the values that follow are cut by this size.
        if len(body) != size:
            raise FormatError(f"an uncompressed page has {len(body)} bytes, its header says {size}")
        return body
    # The size is a number of the file, and a buffer is made by it.
    if size < 0 or codec not in _NAMES:
        raise FormatError(f"a page of {size} bytes in codec {codec} cannot be decompressed")
    try:
        text = pa.Codec(_NAMES[codec]).decompress(body, decompressed_size=size)
    except (pa.ArrowException, OSError):
        # The cause is left out: its text may quote a value.
        raise FormatError("a page cannot be decompressed") from None
    if not _is_filled(codec, body, size):
        raise FormatError(f"PageHeader.uncompressed_page_size is {size}, the page has fewer bytes")
    return text


def _is_filled(codec: CompressionCodec, body: bytes | memoryview, size: int) -> bool:
    """Return whether the decompressed body has all of ``size`` bytes. It has no more."""
    if codec == CompressionCodec.ZSTD:
        # Its decoder was given the size, and has refused any other.
        return True
    if codec == CompressionCodec.SNAPPY:
        return _varint(body) == size
    if codec == CompressionCodec.GZIP and int.from_bytes(body[-_ISIZE:], "little") == size:
        return True
    # A gzip body may also have several members.
    return _needs_all(codec, body, size)


def _varint(body: bytes | memoryview) -> int:
    """Return the size at the start of a snappy body. The decoder writes exactly that many bytes."""
    found = shift = 0
    # A number of 32 bits takes five bytes at most.
    for byte in body[:5]:
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return found


def _needs_all(codec: CompressionCodec, body: bytes | memoryview, size: int) -> bool:
    """Return whether a buffer of one byte less is too small. These codecs do not store the size."""
    if size == 0:
        # Into an empty buffer gzip's decoder writes nothing, whatever the text is.
        return codec != CompressionCodec.GZIP
    try:
        pa.Codec(_NAMES[codec]).decompress(body, decompressed_size=size - 1)
    except (pa.ArrowException, OSError):
        return True
    return False
