"""Edit a FileMetaData where its bytes lie: filters, texts, the words about its encryption.

A chunk's metadata are in clear, or as a module of their own, or in both ways.  Fields are set in
each copy and all other bytes stay as they lie, so a field that nobody here knows survives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.opened import Chunk, Footer
from secure_bloom.parquet.structures.metadata import (
    AesGcmV1,
    ColumnChunk,
    ColumnMetaData,
    EncryptionAlgorithm,
    FileCryptoMetaData,
    FileMetaData,
    KeyValue,
)
from secure_bloom.parquet.structures.splices import (
    NewValue,
    Splice,
    binary,
    i32,
    i64,
    set_fields,
    splice,
    struct,
    structs,
    structure,
    with_fields,
)
from secure_bloom.parquet.structures.wire_fields import (
    content,
    encoded_elements,
    find_fields,
    find_nested,
)

_META_DATA: Final = ColumnChunk.meta_data.id
_SEALED: Final = ColumnChunk.encrypted_column_metadata.id
_OFFSET: Final = ColumnMetaData.bloom_filter_offset.id
_LENGTH: Final = ColumnMetaData.bloom_filter_length.id
_TEXTS: Final = FileMetaData.key_value_metadata.id


class FilterPlace(NamedTuple):
    """The place of the filter of a chunk: ``length`` bytes, all encryption overhead included."""

    chunk: Chunk
    offset: int
    length: int


def with_filters(footer: Footer, places: Iterable[FilterPlace]) -> bytes:
    """Return the FileMetaData of ``footer`` with filters in all copies of chunk metadata.

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


def with_texts(plain: bytes, new: Iterable[bytes] = (), *, without: Collection[str]) -> bytes:
    """Return a FileMetaData without the texts of some names, and with ``new`` ones at the end.

    ``new`` are encoded KeyValues.  Where nothing can change, the bytes stay as they are.
    """
    added = list(new)
    # To look for a field takes a walk over all row groups.
    field = find_fields(plain).by_id.get(_TEXTS) if without or added else None
    if field is None and not added:
        return plain
    # Names are compared as bytes: a text that is not UTF-8 must not end the run.
    dropped = {name.encode() for name in without}
    every = encoded_elements(plain, field)
    kept = [text for text in every if _text_name(text) not in dropped]
    return with_fields(plain, {_TEXTS: structs([*kept, *added])})


def _text_name(encoded: bytes) -> bytes:
    field = find_fields(encoded).by_id.get(KeyValue.key.id)
    if field is None:
        raise FormatError("a KeyValue has no key")
    return content(encoded, field)


def algorithm_of(file_aad: bytes, *, uses_ctr: bool) -> bytes:
    """Return an EncryptionAlgorithm, AES_GCM_V1 or AES_GCM_CTR_V1, which have the same fields."""
    parameters = structure({AesGcmV1.aad_file_unique.id: binary(file_aad)})
    member = EncryptionAlgorithm.AES_GCM_CTR_V1 if uses_ctr else EncryptionAlgorithm.AES_GCM_V1
    return structure({member.id: struct(parameters)})


def crypto_metadata(algorithm: bytes, key_metadata: bytes) -> bytes:
    """Return the FileCryptoMetaData in front of an encrypted footer."""
    return structure(
        {
            FileCryptoMetaData.encryption_algorithm.id: struct(algorithm),
            FileCryptoMetaData.key_metadata.id: binary(key_metadata),
        }
    )


def signing_fields(algorithm: bytes, key_metadata: bytes) -> dict[int, NewValue]:
    """Return the fields of a FileMetaData that is signed: its algorithm, and its key's metadata.

    They are in clear: readers find the footer's key by them before they can check anything
    (Encryption.md 5.5).
    """
    return {
        FileMetaData.encryption_algorithm.id: struct(algorithm),
        FileMetaData.footer_signing_key_metadata.id: binary(key_metadata),
    }
