"""Open a column chunk of a footer: decrypt its metadata, and check that it describes its column.

Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.file_ciphers import FileCiphers
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import ColumnChunk, ColumnMetaData, CompressionCodec
from secure_bloom.parquet.structures.records import decode_record, known_member

# This is looked at for every page, and a dict of numbers is faster than an enumeration.
_CODECS: dict[int, CompressionCodec] = {codec.value: codec for codec in CompressionCodec}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One column chunk with its own metadata, which was decrypted if it was encrypted.

    ``row_group`` and ``column`` are its ordinals in the footer.
    """

    row_group: int
    column: int
    leaf: Leaf
    num_rows: int
    column_chunk: ColumnChunk
    meta_data: ColumnMetaData
    cipher: ColumnCipher | None

    @property
    def is_under_footer_key(self) -> bool:
        """Whether the chunk is encrypted under the footer's key, as in uniform encryption."""
        crypto = self.column_chunk.crypto_metadata
        return crypto is not None and crypto.ENCRYPTION_WITH_FOOTER_KEY is not None

    @property
    def codec(self) -> CompressionCodec:
        """The codec of the pages. Raises UnsupportedFeatureError for an unknown codec."""
        known = _CODECS.get(self.meta_data.codec)
        if known is None:
            return known_member(CompressionCodec, self.meta_data.codec, "ColumnMetaData.codec")
        return known


class ChunkRows(NamedTuple):
    """The row group of a column chunk: its position, its ``ordinal`` in AADs, and its rows."""

    row_group: int
    ordinal: int | None
    num_rows: int


def decrypt_chunk(
    column_chunk: ColumnChunk,
    leaf: Leaf,
    column: int,
    rows: ChunkRows,
    ciphers: FileCiphers,
) -> Chunk:
    """Return a column chunk whose metadata is decrypted and checked.

    Its errors do not name the row group and the column.
    """
    # Only summary files have one, and there offsets are those of another file.
    if column_chunk.file_path is not None:
        raise UnsupportedFeatureError("its data is in another file (ColumnChunk.file_path)")
    crypto = column_chunk.crypto_metadata
    ciphers.keys.trust.check_column(leaf.path, is_encrypted=crypto is not None)
    # Writers may leave the ordinal out; then it is the place in the footer.
    ordinal = rows.row_group if rows.ordinal is None else rows.ordinal
    column_cipher = ciphers.column_cipher(crypto, leaf.name, ordinal, column)
    meta_data, module = column_chunk.meta_data, column_chunk.encrypted_column_metadata
    if module is not None and column_cipher is not None:
        # Beside it, writers may leave metadata in clear without statistics: not to be believed.
        plain = column_cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
        meta_data = decode_record(ColumnMetaData, plain)
    if meta_data is None:
        raise FormatError("ColumnChunk.meta_data is missing")
    # The AAD binds a module to its ordinals, and nothing binds those to a name: check it.
    if tuple(meta_data.path_in_schema) != leaf.stored_path:
        raise FormatError("ColumnMetaData.path_in_schema is not the column's path")
    return Chunk(
        row_group=rows.row_group,
        column=column,
        leaf=leaf,
        num_rows=rows.num_rows,
        column_chunk=column_chunk,
        meta_data=meta_data,
        cipher=column_cipher,
    )
