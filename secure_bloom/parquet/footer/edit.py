"""Edit the bytes of a FileMetaData: add filters, texts, and the fields about its encryption.

A chunk's metadata are in clear, or in an encrypted module, or both.  Fields are set in each copy
and all other bytes stay unchanged, so fields that this package does not know are kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.kernels import extension
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
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
#: Bytes that the fields of a filter, and longer headers after them, add to a chunk at most.
_ROOM: Final = 64
_TEXTS: Final = FileMetaData.key_value_metadata.id


class FilterPlace(NamedTuple):
    """The place of a chunk's filter: ``length`` bytes, including the overhead of encryption."""

    chunk: Chunk
    offset: int
    length: int


def with_filters(footer: Footer, places: Iterable[FilterPlace]) -> bytes:
    """Return the FileMetaData of ``footer`` with filters in all copies of chunk metadata.

    Metadata in a module are encrypted again, under a fresh nonce.
    """
    edits = sorted(_edit(footer, place) for place in places)
    done = _set_filters(footer.plain, edits)
    if done is not None:
        return done
    return splice(footer.plain, (each for edit in edits for each in _splices(footer.plain, edit)))


class _Edit(NamedTuple):
    """The chunk metadata at ``start``, the filter to set in it, and how to encrypt it again."""

    start: int
    offset: int
    length: int
    sealed: bytes | None = None

    @property
    def fields(self) -> dict[int, NewValue]:
        return {_OFFSET: i64(self.offset), _LENGTH: i32(self.length)}


def _edit(footer: Footer, place: FilterPlace) -> _Edit:
    chunk = place.chunk
    start = footer.scan.chunk_offsets[chunk.row_group][chunk.column]
    edit = _Edit(start, place.offset, place.length)
    module = chunk.column_chunk.encrypted_column_metadata
    if module is None or chunk.cipher is None:
        return edit
    # Decrypted again and not made from ``chunk.meta_data``, a record without the fields that nobody
    # here knows.
    plain = chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
    new = _set_filters(plain, [edit._replace(start=0)], is_meta_data=True)
    sealed = with_fields(plain, edit.fields) if new is None else new
    return edit._replace(sealed=chunk.cipher.encrypt(ModuleType.COLUMN_META_DATA, sealed))


def _set_filters(
    plain: bytes, edits: Sequence[_Edit], *, is_meta_data: bool = False
) -> bytes | None:
    """Return ``plain`` with the filters of ``edits``, which are sorted by start.

    Return None if the extension is missing, or leaves unusual bytes to :func:`_splices`.
    """
    if extension.native is None or not edits:
        return None
    sealed = [binary(edit.sealed).encoded if edit.sealed else b"" for edit in edits]
    starts = array("q", [edit.start for edit in edits])
    places = array("q", [number for edit in edits for number in edit[1:3]])
    bounds = array("q", accumulate(map(len, sealed), initial=0))
    new = b"".join(sealed)
    into = bytearray(len(plain) + len(new) + _ROOM * len(edits))
    end = extension.native.set_filters(plain, starts, places, new, bounds, is_meta_data, into)
    return None if end < 0 else bytes(memoryview(into)[:end])


def _splices(plain: bytes, edit: _Edit) -> Iterator[Splice]:
    # Found in the bytes and not in the record, because a splice needs the places of single fields.
    fields, in_clear = find_nested(plain, edit.start, _META_DATA)
    # Both copies are set: readers without the column's key take the one in clear (Encryption.md
    # 5.5).
    if in_clear is not None:
        yield from set_fields(plain, in_clear, edit.fields)
    if edit.sealed is not None:
        yield from set_fields(plain, fields, {_SEALED: binary(edit.sealed)})


def with_texts(plain: bytes, new: Iterable[bytes] = (), *, without: Collection[str]) -> bytes:
    """Return a FileMetaData without the texts named in ``without``, and with ``new`` at the end.

    ``new`` are encoded KeyValues.  If nothing changes, the same bytes are returned.
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
    """Return an encoded EncryptionAlgorithm: AES_GCM_V1 or AES_GCM_CTR_V1."""
    parameters = structure({AesGcmV1.aad_file_unique.id: binary(file_aad)})
    member = EncryptionAlgorithm.AES_GCM_CTR_V1 if uses_ctr else EncryptionAlgorithm.AES_GCM_V1
    return structure({member.id: struct(parameters)})


def crypto_metadata(algorithm: bytes, key_metadata: bytes) -> bytes:
    """Return the FileCryptoMetaData that comes before an encrypted footer."""
    return structure(
        {
            FileCryptoMetaData.encryption_algorithm.id: struct(algorithm),
            FileCryptoMetaData.key_metadata.id: binary(key_metadata),
        }
    )


def signing_fields(algorithm: bytes, key_metadata: bytes) -> dict[int, NewValue]:
    """Return the fields of a signed FileMetaData: its algorithm, and its key's metadata.

    They are in clear, because readers need them to find the footer's key (Encryption.md 5.5).
    """
    return {
        FileMetaData.encryption_algorithm.id: struct(algorithm),
        FileMetaData.footer_signing_key_metadata.id: binary(key_metadata),
    }
