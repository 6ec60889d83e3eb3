"""The footer of a file whose parts have moved and whose protection has changed.

Every structure is the old one with some fields set, so fields that nobody here knows stay.  Field
ids are those of ``thrift/parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.options import FooterMode
from secure_bloom.parquet.footer import Chunk, seal_footer
from secure_bloom.parquet.pages import chunk_extent, has_data_page
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
    Field,
    content,
    encoded_elements,
    find_fields,
    number,
)
from secure_bloom.rekeying.new_keys import NewFileKeys, SealedWith
from secure_bloom.rekeying.transfer import NewPlaces

#: The copy in clear of a sealed ColumnMetaData lacks these fields: key_value_metadata, statistics,
#: encoding_stats, size_statistics, geospatial_statistics.
_SENSITIVE = (8, 12, 13, 16, 17)
_ROW_GROUPS, _KEY_VALUES, _ALGORITHM, _SIGNING_KEY = 4, 5, 8, 9
_EMPTY_STRUCT = b"\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFooter:
    """The parts of the new footer: the old one as it is in clear, new places, new keys if any."""

    plain: bytes
    chunks: Sequence[Sequence[Chunk]]
    places: Mapping[tuple[int, int], NewPlaces]
    mode: FooterMode
    keys: NewFileKeys | None
    drop_metadata: frozenset[str]

    def encode(self) -> bytes:
        """The bytes from the footer's start to the end of the file."""
        crypto, key, file_aad = b"", None, b""
        if self.keys is not None:
            # The new file has no AAD prefix, whatever the old one had: its readers need not supply
            # one.
            key, file_aad = self.keys.footer.key, self.keys.aad_file_unique
            crypto = structure(
                {1: struct(_algorithm(self.keys)), 2: binary(self.keys.footer.key_metadata)}
            )
        return seal_footer(self._metadata(), self.mode, key=key, file_aad=file_aad, crypto=crypto)

    def _metadata(self) -> bytes:
        fields = find_fields(self.plain).by_id
        groups = encoded_elements(self.plain, fields.get(_ROW_GROUPS))
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
            new[_ALGORITHM] = struct(_algorithm(self.keys))
            # This is in clear: readers find the footer's key by it before they can check anything
            # (Encryption.md 5.5).
            new[_SIGNING_KEY] = binary(self.keys.footer.key_metadata)
        if self.drop_metadata and _KEY_VALUES in fields:
            new[_KEY_VALUES] = structs(self._kept_texts(fields[_KEY_VALUES]))
        return with_fields(self.plain, new)

    def _kept_texts(self, field: Field) -> list[bytes]:
        # Names are compared as bytes: a text that is not UTF-8 must not end the run.
        dropped = {name.encode() for name in self.drop_metadata}
        texts_of_footer = encoded_elements(self.plain, field)
        return [text for text in texts_of_footer if _text_name(text) not in dropped]

    def _row_group(self, ordinal: int, group: bytes) -> bytes:
        fields = find_fields(group).by_id
        columns = encoded_elements(group, fields.get(1))
        places = [self.places[ordinal, column] for column in range(len(columns))]
        # The sizes count page headers as they are stored, and bodies as they are when decompressed.
        growth = sum(place.header_growth for place in places)
        new: dict[int, NewValue | None] = {
            1: structs(
                self._column_chunk(self.chunks[ordinal][column], column, chunk)
                for column, chunk in enumerate(columns)
            ),
            2: i64(number(group, fields.get(2)) + growth),
        }
        if 5 in fields:
            # RowGroup.file_offset.  A group without columns has no page: 4 is behind the magic.
            new[5] = i64(min((place.start for place in places), default=4))
        if 6 in fields:
            # RowGroup.total_compressed_size counts bytes as stored, frames of modules included.
            new[6] = i64(sum(place.length for place in places))
        if self.keys is not None:
            # Readers take the ordinal of every module's AAD from here, else from the position.
            new[7] = i16(ordinal)
        return with_fields(group, new)

    def _column_chunk(self, chunk: Chunk, column: int, encoded: bytes) -> bytes:
        places = self.places[chunk.row_group, column]
        sealed = None if self.keys is None else self.keys.sealed_with(column)
        meta_data = with_fields(_meta_data(chunk, encoded), _new_places(chunk, places))
        new = _new_indexes(places)
        new[2] = i64(_file_offset(chunk, places, encoded))
        # First as for a column in clear, because old values of 8 (crypto_metadata) and 9
        # (encrypted_column_metadata) must not stay.
        new[3], new[8], new[9] = struct(meta_data), None, None
        if sealed is not None and self.keys is not None:
            new[8] = struct(_crypto_metadata(chunk, sealed, self.keys, column))
            # Under the footer key of an encrypted footer the metadata stay where they are
            # (Encryption.md 5.4).
            if column in self.keys.columns or self.mode is FooterMode.SIGNED:
                new[3] = self._copy_in_clear(meta_data)
                new[9] = binary(self._sealed_meta_data(chunk, column, meta_data))
        return with_fields(encoded, new)

    def _copy_in_clear(self, meta_data: bytes) -> NewValue | None:
        if self.mode is not FooterMode.SIGNED:
            return None
        return struct(with_fields(meta_data, dict.fromkeys(_SENSITIVE)))

    def _sealed_meta_data(self, chunk: Chunk, column: int, meta_data: bytes) -> bytes:
        new = None if self.keys is None else self.keys.cipher(chunk.row_group, column)
        if new is None:
            raise FormatError("a column in clear has no metadata to seal")
        return new.encrypt(ModuleType.COLUMN_META_DATA, meta_data)


def _algorithm(keys: NewFileKeys) -> bytes:
    """EncryptionAlgorithm: AES_GCM_V1 (1) or AES_GCM_CTR_V1 (2), with aad_file_unique (2)."""
    parameters = structure({2: binary(keys.aad_file_unique)})
    return structure({2 if keys.uses_ctr else 1: struct(parameters)})


def _crypto_metadata(chunk: Chunk, sealed: SealedWith, keys: NewFileKeys, column: int) -> bytes:
    """ColumnCryptoMetaData: ENCRYPTION_WITH_FOOTER_KEY (1) or _COLUMN_KEY (2)."""
    if column in keys.under_footer_key:
        return structure({1: struct(_EMPTY_STRUCT)})
    # The path is required by the format, although the chunk's place tells the column too.
    own = structure({1: texts(chunk.leaf.path), 2: binary(sealed.key_metadata)})
    return structure({2: struct(own)})


def _meta_data(chunk: Chunk, encoded: bytes) -> bytes:
    """The whole ColumnMetaData as its writer encoded it, in clear."""
    if chunk.column_chunk.encrypted_column_metadata is not None and chunk.cipher is not None:
        module = chunk.column_chunk.encrypted_column_metadata
        return chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
    field = find_fields(encoded).by_id.get(3)
    if field is None:
        raise FormatError("ColumnChunk.meta_data is missing")
    return encoded[field.value : field.end]


def _new_places(chunk: Chunk, places: NewPlaces) -> dict[int, NewValue | None]:
    """Fields 6, 7, 9, 11, 14 and 15 of a ColumnMetaData."""
    meta_data = chunk.meta_data
    new: dict[int, NewValue | None] = {
        6: i64(meta_data.total_uncompressed_size + places.header_growth),
        7: i64(places.length),
        14: None if places.filter is None else i64(places.filter[0]),
        15: None if places.filter is None else i32(places.filter[1]),
    }
    # A chunk without a data page has no such place, so its own start is named.
    new[9] = i64(places.start if places.first_data is None else places.first_data)
    if places.moved_by is not None:
        if has_data_page(chunk):
            new[9] = i64(meta_data.data_page_offset + places.moved_by)
        if (meta_data.dictionary_page_offset or 0) > 0:
            new[11] = i64((meta_data.dictionary_page_offset or 0) + places.moved_by)
    elif places.dictionary is not None:
        new[11] = i64(places.dictionary)
    return new


def _new_indexes(places: NewPlaces) -> dict[int, NewValue | None]:
    """Fields 4 to 7 of a ColumnChunk."""
    offset_index, column_index = places.offset_index, places.column_index
    return {
        4: None if offset_index is None else i64(offset_index[0]),
        5: None if offset_index is None else i32(offset_index[1]),
        6: None if column_index is None else i64(column_index[0]),
        7: None if column_index is None else i32(column_index[1]),
    }


def _file_offset(chunk: Chunk, places: NewPlaces, encoded: bytes) -> int:
    """ColumnChunk.file_offset: 0, or where the chunk starts or ends, by its writer's reading."""
    old = number(encoded, find_fields(encoded).by_id.get(2))
    meta_data = chunk.meta_data
    starts = {meta_data.data_page_offset, meta_data.dictionary_page_offset}
    # Writers do not agree on this field, so the new value has the meaning that the old one had.
    if old in starts:
        return places.start
    return places.start + places.length if old == sum(chunk_extent(chunk)) else 0


def _text_name(encoded: bytes) -> bytes:
    field = find_fields(encoded).by_id.get(1)
    if field is None:
        raise FormatError("a KeyValue has no key")
    return content(encoded, field)
