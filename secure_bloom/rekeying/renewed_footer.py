"""The footer of a file with other key metadata in the places of the old, and all else as it is.

Field ids are those of ``thrift/parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Mapping

from secure_bloom.options import FooterMode
from secure_bloom.parquet.footer import Footer
from secure_bloom.parquet.footer_tail import Tail
from secure_bloom.parquet.structures.splices import NewValue, binary, struct, structs, with_fields
from secure_bloom.parquet.structures.wire_fields import content, encoded_elements, find_fields


def renewed_crypto(tail: Tail, metadata: Mapping[bytes, bytes]) -> bytes:
    """FileCryptoMetaData (key_metadata: 2) of an encrypted footer."""
    # A signed footer has its key metadata in field 9 of the FileMetaData itself.
    if tail.mode is not FooterMode.ENCRYPTED or tail.key_metadata is None:
        return b""
    return with_fields(tail.clear, {2: binary(metadata[tail.key_metadata])})


def renewed_metadata(footer: Footer, metadata: Mapping[bytes, bytes]) -> bytes:
    """FileMetaData: row_groups 4, footer_signing_key_metadata 9."""
    plain = footer.plain
    fields = find_fields(plain).by_id
    new: dict[int, NewValue | None] = {}
    if 4 in fields:
        groups = encoded_elements(plain, fields[4])
        new[4] = structs(_new_row_group(group, metadata) for group in groups)
    if footer.tail.mode is FooterMode.SIGNED and footer.tail.key_metadata is not None:
        new[9] = binary(metadata[footer.tail.key_metadata])
    return with_fields(plain, new)


def _new_row_group(group: bytes, metadata: Mapping[bytes, bytes]) -> bytes:
    columns = find_fields(group).by_id.get(1)
    if columns is None:
        return group
    chunks = [_new_chunk(chunk, metadata) for chunk in encoded_elements(group, columns)]
    return with_fields(group, {1: structs(chunks)})


def _new_chunk(chunk: bytes, metadata: Mapping[bytes, bytes]) -> bytes:
    """ColumnChunk.crypto_metadata 8 . ENCRYPTION_WITH_COLUMN_KEY 2 . key_metadata 2."""
    crypto = find_fields(chunk).by_id.get(8)
    if crypto is None:
        return chunk
    # A structure's bytes stand alone: they are edited and put back without the rest of the chunk.
    union = chunk[crypto.value : crypto.end]
    own = find_fields(union).by_id.get(2)
    # A column under the footer's key has no key metadata of its own.
    if own is None:
        return chunk
    column_key = union[own.value : own.end]
    stored = find_fields(column_key).by_id.get(2)
    if stored is None:
        return chunk
    old = content(column_key, stored)
    changed = with_fields(column_key, {2: binary(metadata[old])})
    return with_fields(chunk, {8: struct(with_fields(union, {2: struct(changed)}))})
