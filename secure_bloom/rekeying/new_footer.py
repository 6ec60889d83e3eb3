"""Make the footer of a file whose parts have moved and whose protection has changed.

Every structure is the old one with some fields set, so fields that this package does not know are
kept.

For a file whose parts stay, ``renewed_metadata`` and ``renewed_crypto`` replace key metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.edit import (
    algorithm_of,
    crypto_metadata,
    signing_fields,
    with_texts,
)
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.footer.seal import seal_footer
from secure_bloom.parquet.pages import chunk_extent, has_data_page, has_dictionary_offset
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    ColumnMetaData,
    EncryptionWithColumnKey,
    FileCryptoMetaData,
    FileMetaData,
    RowGroup,
)
from secure_bloom.parquet.structures.splices import (
    NewValue,
    binary,
    i16,
    i32,
    i64,
    struct,
    structs,
    structure,
    texts,
    with_fields,
)
from secure_bloom.parquet.structures.wire_fields import (
    content,
    encoded_elements,
    find_fields,
    number,
)
from secure_bloom.rekeying.new_keys import NewFileKeys, SealedWith
from secure_bloom.rekeying.transfer import NewPlaces

#: Fields that the copy in clear of a sealed ColumnMetaData lacks: they show something of values.
_SENSITIVE: Final = (
    ColumnMetaData.key_value_metadata.id,
    ColumnMetaData.statistics.id,
    ColumnMetaData.encoding_stats.id,
    ColumnMetaData.size_statistics.id,
    ColumnMetaData.geospatial_statistics.id,
)
_ROW_GROUPS: Final = FileMetaData.row_groups.id
_ALGORITHM: Final = FileMetaData.encryption_algorithm.id
_SIGNING_KEY: Final = FileMetaData.footer_signing_key_metadata.id
_EMPTY_STRUCT: Final = b"\0"
#: Where the first page of a file may start: after the magic.
_FIRST_OFFSET: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterChange:
    """What changes in a footer: the places of all parts of its chunks, its mode, and its keys."""

    chunks: Sequence[Sequence[Chunk]]
    places: Mapping[tuple[int, int], NewPlaces]
    mode: FooterMode
    keys: NewFileKeys | None
    drop_metadata: frozenset[str]

    def end_of_file(self, footer: Footer) -> bytes:
        """Return the bytes from the new footer's start to the end of the file."""
        plain, crypto, key, file_aad = self._edited(footer.plain), b"", None, b""
        if self.keys is not None:
            # The new file has no AAD prefix, whatever the old one had: its readers need not supply
            # one.
            key, file_aad = self.keys.footer.key, self.keys.aad_file_unique
            crypto = crypto_metadata(_algorithm(self.keys), self.keys.footer.key_metadata)
        return seal_footer(plain, self.mode, key=key, file_aad=file_aad, crypto=crypto)

    def _edited(self, plain: bytes) -> bytes:
        fields = find_fields(plain).by_id
        groups = encoded_elements(plain, fields.get(_ROW_GROUPS))
        is_signed = self.mode is FooterMode.SIGNED and self.keys is not None
        new: dict[int, NewValue | None] = {
            _ROW_GROUPS: structs(
                self._row_group(ordinal, group) for ordinal, group in enumerate(groups)
            ),
            # Both go, and come back for a signed footer alone: in an encrypted one
            # FileCryptoMetaData has them (Encryption.md 5.4).
            _ALGORITHM: None,
            _SIGNING_KEY: None,
        }
        if is_signed and self.keys is not None:
            new |= signing_fields(_algorithm(self.keys), self.keys.footer.key_metadata)
        return with_texts(with_fields(plain, new), without=self.drop_metadata)

    def _row_group(self, ordinal: int, group: bytes) -> bytes:
        fields = find_fields(group).by_id
        columns = encoded_elements(group, fields.get(RowGroup.columns.id))
        places = [self.places[ordinal, column] for column in range(len(columns))]
        # The sizes count page headers as they are stored, and bodies as they are when decompressed.
        size = number(group, fields.get(RowGroup.total_byte_size.id))
        growth = sum(place.header_growth for place in places)
        new: dict[int, NewValue | None] = {
            RowGroup.columns.id: structs(
                self._column_chunk(self.chunks[ordinal][column], column, chunk)
                for column, chunk in enumerate(columns)
            ),
            RowGroup.total_byte_size.id: i64(size + growth),
        }
        if RowGroup.file_offset.id in fields:
            # A group without columns has no page.
            start = min((place.start for place in places), default=_FIRST_OFFSET)
            new[RowGroup.file_offset.id] = i64(start)
        if RowGroup.total_compressed_size.id in fields:
            # Bytes as they are stored, frames of modules included.
            stored = sum(place.length for place in places)
            new[RowGroup.total_compressed_size.id] = i64(stored)
        if self.keys is not None:
            # Readers take the ordinal of every module's AAD from here, else from the position.
            new[RowGroup.ordinal.id] = i16(ordinal)
        return with_fields(group, new)

    def _column_chunk(self, chunk: Chunk, column: int, encoded: bytes) -> bytes:
        places = self.places[chunk.row_group, column]
        sealed = None if self.keys is None else self.keys.sealed_with(column)
        meta_data = with_fields(_meta_data(chunk, encoded), _new_places(chunk, places))
        new = _new_indexes(places)
        new[ColumnChunk.file_offset.id] = i64(_file_offset(chunk, places, encoded))
        # First as for a column in clear: nothing of the old protection must stay.
        new[ColumnChunk.meta_data.id] = struct(meta_data)
        new[ColumnChunk.crypto_metadata.id] = None
        new[ColumnChunk.encrypted_column_metadata.id] = None
        if sealed is not None and self.keys is not None:
            crypto = _crypto_metadata(chunk, sealed, self.keys, column)
            new[ColumnChunk.crypto_metadata.id] = struct(crypto)
            # Under the footer key of an encrypted footer the metadata stay where they are
            # (Encryption.md 5.4).
            if column in self.keys.columns or self.mode is FooterMode.SIGNED:
                module = self._sealed_meta_data(chunk, column, meta_data)
                new[ColumnChunk.meta_data.id] = self._copy_in_clear(meta_data)
                new[ColumnChunk.encrypted_column_metadata.id] = binary(module)
        return with_fields(encoded, new)

    def _copy_in_clear(self, meta_data: bytes) -> NewValue | None:
        # Readers of a signed footer who lack the column's key learn by this copy where the chunk
        # is, and nothing of its values.  An encrypted footer shows them nothing.
        if self.mode is not FooterMode.SIGNED:
            return None
        return struct(with_fields(meta_data, dict.fromkeys(_SENSITIVE)))

    def _sealed_meta_data(self, chunk: Chunk, column: int, meta_data: bytes) -> bytes:
        new = None if self.keys is None else self.keys.cipher(chunk.row_group, column)
        if new is None:
            raise FormatError("a column in clear has no metadata to seal")
        return new.encrypt(ModuleType.COLUMN_META_DATA, meta_data)


def _algorithm(keys: NewFileKeys) -> bytes:
    return algorithm_of(keys.aad_file_unique, uses_ctr=keys.uses_ctr)


def _crypto_metadata(chunk: Chunk, sealed: SealedWith, keys: NewFileKeys, column: int) -> bytes:
    """Return the ColumnCryptoMetaData: the footer's key, or a key of the column's own."""
    if column in keys.under_footer_key:
        member = ColumnCryptoMetaData.ENCRYPTION_WITH_FOOTER_KEY.id
        return structure({member: struct(_EMPTY_STRUCT)})
    own = structure(
        {
            # Required by the format, although the chunk's place shows the column too.
            EncryptionWithColumnKey.path_in_schema.id: texts(chunk.leaf.stored_path),
            EncryptionWithColumnKey.key_metadata.id: binary(sealed.key_metadata),
        }
    )
    return structure({ColumnCryptoMetaData.ENCRYPTION_WITH_COLUMN_KEY.id: struct(own)})


def _meta_data(chunk: Chunk, encoded: bytes) -> bytes:
    """Return the whole ColumnMetaData in clear, as its writer encoded it."""
    if chunk.column_chunk.encrypted_column_metadata is not None and chunk.cipher is not None:
        module = chunk.column_chunk.encrypted_column_metadata
        return chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
    field = find_fields(encoded).by_id.get(ColumnChunk.meta_data.id)
    if field is None:
        raise FormatError("ColumnChunk.meta_data is missing")
    return encoded[field.value : field.end]


def _new_places(chunk: Chunk, places: NewPlaces) -> dict[int, NewValue | None]:
    """Return the sizes and offsets of a ColumnMetaData."""
    meta_data, filter_place = chunk.meta_data, places.filter
    # A chunk without a data page has no such place, so its own start is named.
    first_data = places.start if places.first_data is None else places.first_data
    dictionary = places.dictionary
    if places.moved_by is not None:
        if has_data_page(chunk):
            first_data = meta_data.data_page_offset + places.moved_by
        old = meta_data.dictionary_page_offset or 0
        dictionary = old + places.moved_by if has_dictionary_offset(chunk) else None
    new: dict[int, NewValue | None] = {
        ColumnMetaData.total_uncompressed_size.id: i64(
            meta_data.total_uncompressed_size + places.header_growth
        ),
        ColumnMetaData.total_compressed_size.id: i64(places.length),
        ColumnMetaData.data_page_offset.id: i64(first_data),
        ColumnMetaData.bloom_filter_offset.id: filter_place and i64(filter_place[0]),
        ColumnMetaData.bloom_filter_length.id: filter_place and i32(filter_place[1]),
    }
    if dictionary is not None:
        new[ColumnMetaData.dictionary_page_offset.id] = i64(dictionary)
    return new


def _new_indexes(places: NewPlaces) -> dict[int, NewValue | None]:
    """Return the places of a ColumnChunk's page index. A place is None for a missing index."""
    offset_index, column_index = places.offset_index, places.column_index
    return {
        ColumnChunk.offset_index_offset.id: offset_index and i64(offset_index[0]),
        ColumnChunk.offset_index_length.id: offset_index and i32(offset_index[1]),
        ColumnChunk.column_index_offset.id: column_index and i64(column_index[0]),
        ColumnChunk.column_index_length.id: column_index and i32(column_index[1]),
    }


def _file_offset(chunk: Chunk, places: NewPlaces, encoded: bytes) -> int:
    """Return ColumnChunk.file_offset as its writer set it: 0, or start or end of the chunk."""
    old = number(encoded, find_fields(encoded).by_id.get(ColumnChunk.file_offset.id))
    meta_data = chunk.meta_data
    starts = {meta_data.data_page_offset, meta_data.dictionary_page_offset}
    # Writers do not agree on this field, so the new value has the meaning that the old one had.
    if old in starts:
        return places.start
    return places.start + places.length if old == sum(chunk_extent(chunk)) else 0


_CRYPTO_METADATA: Final = ColumnChunk.crypto_metadata.id
_COLUMN_KEY: Final = ColumnCryptoMetaData.ENCRYPTION_WITH_COLUMN_KEY.id
_KEY_METADATA: Final = EncryptionWithColumnKey.key_metadata.id


def renewed_crypto(tail: Tail, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return the FileCryptoMetaData of an encrypted footer, with new key metadata."""
    # A signed footer has its key metadata in the FileMetaData itself (Encryption.md 5.5).
    if tail.mode is not FooterMode.ENCRYPTED or tail.key_metadata is None:
        return b""
    key_metadata = binary(metadata[tail.key_metadata])
    return with_fields(tail.clear, {FileCryptoMetaData.key_metadata.id: key_metadata})


def renewed_metadata(footer: Footer, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return the FileMetaData with new key metadata.

    They are in its row groups, and in a signed footer also in the signing key's metadata.
    """
    plain = footer.plain
    field = find_fields(plain).by_id.get(FileMetaData.row_groups.id)
    new: dict[int, NewValue | None] = {}
    if field is not None:
        groups = encoded_elements(plain, field)
        new[FileMetaData.row_groups.id] = structs(_new_row_group(it, metadata) for it in groups)
    if footer.tail.mode is FooterMode.SIGNED and footer.tail.key_metadata is not None:
        signing_key = binary(metadata[footer.tail.key_metadata])
        new[FileMetaData.footer_signing_key_metadata.id] = signing_key
    return with_fields(plain, new)


def _new_row_group(group: bytes, metadata: Mapping[bytes, bytes]) -> bytes:
    columns = find_fields(group).by_id.get(RowGroup.columns.id)
    if columns is None:
        return group
    chunks = [_new_chunk(chunk, metadata) for chunk in encoded_elements(group, columns)]
    return with_fields(group, {RowGroup.columns.id: structs(chunks)})


def _new_chunk(chunk: bytes, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return a ColumnChunk whose column key has new key metadata."""
    crypto = find_fields(chunk).by_id.get(_CRYPTO_METADATA)
    if crypto is None:
        return chunk
    # A structure's bytes are edited and put back without the rest of the chunk.
    union = chunk[crypto.value : crypto.end]
    own = find_fields(union).by_id.get(_COLUMN_KEY)
    # A column under the footer's key has no key metadata of its own.
    if own is None:
        return chunk
    column_key = union[own.value : own.end]
    stored = find_fields(column_key).by_id.get(_KEY_METADATA)
    if stored is None:
        return chunk
    old = content(column_key, stored)
    changed = with_fields(column_key, {_KEY_METADATA: binary(metadata[old])})
    new = with_fields(union, {_COLUMN_KEY: struct(changed)})
    return with_fields(chunk, {_CRYPTO_METADATA: struct(new)})
