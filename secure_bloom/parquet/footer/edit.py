"""Enter filters into a FileMetaData: offset and length in the metadata of their column chunks.

A chunk's metadata are in clear, or as a module of their own, or in both ways.  Two fields of each
copy are set and all other bytes stay as they lie, so a field that nobody here knows survives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.parquet.footer.opened import Chunk, Footer
from secure_bloom.parquet.structures.metadata import ColumnChunk, ColumnMetaData
from secure_bloom.parquet.structures.splices import (
    NewValue,
    Splice,
    binary,
    i32,
    i64,
    set_fields,
    splice,
    with_fields,
)
from secure_bloom.parquet.structures.wire_fields import find_nested

_META_DATA: Final = ColumnChunk.meta_data.id
_SEALED: Final = ColumnChunk.encrypted_column_metadata.id
_OFFSET: Final = ColumnMetaData.bloom_filter_offset.id
_LENGTH: Final = ColumnMetaData.bloom_filter_length.id


class FilterPlace(NamedTuple):
    """The place of the filter of a chunk: ``length`` bytes, all encryption overhead included."""

    chunk: Chunk
    offset: int
    length: int


def with_filters(footer: Footer, places: Iterable[FilterPlace]) -> bytes:
    """The FileMetaData of ``footer`` with filters entered in every copy of their chunks' metadata.

    Metadata that are a module are encrypted again, under a fresh nonce.
    """
    plain = footer.plain
    return splice(plain, (each for place in places for each in _splices(footer, plain, place)))


def _splices(footer: Footer, plain: bytes, place: FilterPlace) -> Iterator[Splice]:
    chunk = place.chunk
    new = {_OFFSET: i64(place.offset), _LENGTH: i32(place.length)}
    start = footer.scan.chunk_offsets[chunk.row_group][chunk.column]
    # Found in the bytes and not in the record, because a splice needs the places of single fields.
    fields, in_clear = find_nested(plain, start, _META_DATA)
    # Both copies are set: readers without the column's key take the one in clear (Encryption.md
    # 5.5).
    if in_clear is not None:
        yield from set_fields(plain, in_clear, new)
    sealed = _sealed_again(chunk, new)
    if sealed is not None:
        yield from set_fields(plain, fields, {_SEALED: binary(sealed)})


def _sealed_again(chunk: Chunk, new: dict[int, NewValue]) -> bytes | None:
    module = chunk.column_chunk.encrypted_column_metadata
    if module is None or chunk.cipher is None:
        return None
    # Decrypted again and not made from ``chunk.meta_data``, a record without the fields that nobody
    # here knows.
    meta_data = chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
    return chunk.cipher.encrypt(ModuleType.COLUMN_META_DATA, with_fields(meta_data, new))
