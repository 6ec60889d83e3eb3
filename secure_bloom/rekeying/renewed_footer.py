"""The footer of a file with other key metadata in the places of the old, and all else as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from secure_bloom.calling.options import FooterMode
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnCryptoMetaData,
    EncryptionWithColumnKey,
    FileCryptoMetaData,
    FileMetaData,
    RowGroup,
)
from secure_bloom.parquet.structures.splices import NewValue, binary, struct, structs, with_fields
from secure_bloom.parquet.structures.wire_fields import content, encoded_elements, find_fields

_CRYPTO_METADATA: Final = ColumnChunk.crypto_metadata.id
_COLUMN_KEY: Final = ColumnCryptoMetaData.ENCRYPTION_WITH_COLUMN_KEY.id
_KEY_METADATA: Final = EncryptionWithColumnKey.key_metadata.id


def renewed_crypto(tail: Tail, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return the FileCryptoMetaData of an encrypted footer."""
    # A signed footer has its key metadata in the FileMetaData itself (Encryption.md 5.5).
    if tail.mode is not FooterMode.ENCRYPTED or tail.key_metadata is None:
        return b""
    key_metadata = binary(metadata[tail.key_metadata])
    return with_fields(tail.clear, {FileCryptoMetaData.key_metadata.id: key_metadata})


def renewed_metadata(footer: Footer, metadata: Mapping[bytes, bytes]) -> bytes:
    """Return the FileMetaData.

    Its row groups, and in a signed footer the signing key's metadata.
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
    """ColumnChunk.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY.key_metadata, set anew."""
    crypto = find_fields(chunk).by_id.get(_CRYPTO_METADATA)
    if crypto is None:
        return chunk
    # A structure's bytes stand alone: they are edited and put back without the rest of the chunk.
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
