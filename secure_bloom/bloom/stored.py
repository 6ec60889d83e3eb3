"""Encode and decode a filter as it is in a file: a header and a bitset.

    plain:      BloomFilterHeader | bitset
    encrypted:  BloomFilterHeader module (type 8) | bitset module (type 9)

The modules of an encrypted column are encrypted under the column's own key: a filter in clear would
show anyone which values the column has.  A module that does not authenticate is an error, never "no
filter", because otherwise an attacker could switch filters off.  BloomFilter.md, Encryption.md 5.1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from secure_bloom.bloom.split_block import BYTES_PER_BLOCK, SplitBlockBloomFilter
from secure_bloom.calling.options import MAX_BYTES
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.structures.metadata import (
    BloomFilterAlgorithm,
    BloomFilterCompression,
    BloomFilterHash,
    BloomFilterHeader,
)
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.parquet.structures.splices import EMPTY, encoded
from secure_bloom.storage import InputFile

#: Most bytes of a header: real ones take 16 in clear, and 128 in parquet-java's padded module.
HEADER_LIMIT = 1024
_FRAME_OVERHEAD = cipher.LENGTH_SIZE + cipher.NONCE_SIZE + cipher.TAG_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBloomFilter:
    """A filter as it is in a file: ``length`` bytes from ``offset``, all overhead included."""

    offset: int
    length: int
    filter: SplitBlockBloomFilter

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.offset + self.length


def encode_bloom_filter(
    bloom_filter: SplitBlockBloomFilter, column_cipher: ColumnCipher | None
) -> bytes:
    """Return header and bitset as they are written, encrypted if the column is."""
    header = encoded_header(bloom_filter.byte_count)
    bitset = bloom_filter.to_bytes()
    if column_cipher is None:
        return header + bitset
    return column_cipher.encrypt(ModuleType.BLOOM_FILTER_HEADER, header) + column_cipher.encrypt(
        ModuleType.BLOOM_FILTER_BITSET, bitset
    )


@functools.lru_cache(maxsize=64)
def encoded_header(num_bytes: int) -> bytes:
    """Return the header in front of a bitset of ``num_bytes`` bytes."""
    # The three unions have one member each: the only algorithm, hash and compression of the format.
    return encoded(
        BloomFilterHeader,
        numBytes=num_bytes,
        algorithm=encoded(BloomFilterAlgorithm, BLOCK=EMPTY),
        hash=encoded(BloomFilterHash, XXHASH=EMPTY),
        compression=encoded(BloomFilterCompression, UNCOMPRESSED=EMPTY),
    )


def decode_bloom_filter(
    stored: bytes | memoryview, column_cipher: ColumnCipher | None
) -> SplitBlockBloomFilter:
    """Return the filter in exactly these bytes, which :func:`encode_bloom_filter` made.

    Raises IntegrityError for a module that does not authenticate, UnsupportedFeatureError for
    another algorithm, hash or compression, FormatError for impossible sizes.
    """
    view = memoryview(stored)
    if column_cipher is None:
        num_bytes, length = _plain_header(view)
        bitset: bytes | memoryview = view[length:]
    else:
        # Two modules follow each other.  Each has a type of its own in the AAD (8 and 9),
        # and the chunk's ordinals, so the bitset of one filter cannot be joined to the header of
        # another chunk's.  Encryption.md 4.4.2.  No tag covers the length fields.  A wrong one cuts
        # both modules at a wrong byte, and then their tags fail.
        length = cipher.frame_length(view)
        header_module = view[:length]
        header = column_cipher.decrypt(ModuleType.BLOOM_FILTER_HEADER, header_module)
        num_bytes, _ = (_short_header if len(header) <= HEADER_LIMIT else _header)(header)
        bitset = column_cipher.decrypt(ModuleType.BLOOM_FILTER_BITSET, view[length:])
    # Both are checked: the header alone could promise more than there is, and the bitset's length
    # comes from the footer.
    if num_bytes != len(bitset):
        raise FormatError(
            f"BloomFilterHeader.numBytes is {num_bytes}, the bitset has {len(bitset)}"
        )
    return SplitBlockBloomFilter.from_bytes(bitset)


def _plain_header(view: memoryview) -> tuple[int, int]:
    """Return what :func:`_header` returns, for a filter in clear that includes its bitset."""
    # A header mostly has 16 bytes, less than a block of 32.  Then the bytes beyond whole blocks are
    # the header, and the cache knows it.
    likely = len(view) % BYTES_PER_BLOCK
    try:
        return _short_header(bytes(view[:likely]))
    except FormatError:
        return _header(view)


def _header(encoded: bytes | memoryview) -> tuple[int, int]:
    """Return the checked numBytes of the header at the start, and the header's length."""
    header, length = measured_record(BloomFilterHeader, encoded)
    return _checked_size(header), length


#: Most filters of a table have the same size, hence the same header: it is decoded once.
_short_header = functools.lru_cache(maxsize=64)(_header)


def _checked_size(header: BloomFilterHeader) -> int:
    # member() raises for a union with a member of a later format: its bits could mean anything.
    header.algorithm.member()
    header.hash.member()
    header.compression.member()
    # Any number of whole blocks is read, as the format allows; only writers need a power of two.
    if not 0 < header.numBytes <= MAX_BYTES or header.numBytes % 32:
        raise FormatError(
            f"BloomFilterHeader.numBytes is {header.numBytes}, wanted a multiple of 32 "
            f"up to {MAX_BYTES}"
        )
    return header.numBytes


def read_bloom_filter(file: InputFile, chunk: Chunk) -> StoredBloomFilter | None:
    """Return the chunk's filter, checked. Return None only if the metadata names no filter."""
    with located(row_group=chunk.row_group, column=chunk.leaf.name):
        extent = filter_extent(file, chunk)
        if extent is None:
            return None
        offset, length = extent
        stored = file.read_at(offset, length)
        return StoredBloomFilter(
            offset=offset, length=length, filter=decode_bloom_filter(stored, chunk.cipher)
        )


def filter_extent(file: InputFile, chunk: Chunk) -> tuple[int, int] | None:
    """Return offset and length of the chunk's filter.

    Return None only if the metadata names none.
    """
    offset = chunk.meta_data.bloom_filter_offset
    if offset is None:
        return None
    length = chunk.meta_data.bloom_filter_length
    if length is None:
        # Format 2.10 brought the field; parquet-java before 1.14 leaves it out.
        length = _measure(file, offset, chunk.cipher)
    # This number of bytes is read at once, and it comes from the footer.
    if not 0 < length <= MAX_BYTES + HEADER_LIMIT:
        raise FormatError(
            f"ColumnMetaData.bloom_filter_length is {length}, "
            f"wanted 1 to {MAX_BYTES + HEADER_LIMIT}"
        )
    return offset, length


def _measure(file: InputFile, offset: int, column_cipher: ColumnCipher | None) -> int:
    """Return the length of a filter whose metadata has no length, as before format 2.10."""
    if column_cipher is None:
        # The number comes from the footer, and nothing has checked it yet.
        if not 0 <= offset < file.size:
            raise FormatError(
                f"ColumnMetaData.bloom_filter_offset is {offset}, the file has {file.size} bytes"
            )
        head = file.read_at(offset, min(HEADER_LIMIT, file.size - offset))
        num_bytes, length = _header(head)
        return length + num_bytes
    # Only the length fields of the two frames are read; nothing is decrypted to measure.
    header_length = _frame_length_at(file, offset, HEADER_LIMIT)
    limit = MAX_BYTES + _FRAME_OVERHEAD
    return header_length + _frame_length_at(file, offset + header_length, limit)


def _frame_length_at(file: InputFile, offset: int, limit: int) -> int:
    length = cipher.LENGTH_SIZE + int.from_bytes(file.read_at(offset, cipher.LENGTH_SIZE), "little")
    # Nothing authenticates a length field, so it is checked before memory is allocated.
    if not _FRAME_OVERHEAD < length <= limit:
        raise FormatError(f"a Bloom filter module has {length} bytes, at most {limit} are possible")
    return length
