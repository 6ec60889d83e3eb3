"""A footer whose every field can be changed through live views, and written back: to forge files.

The package itself edits the bytes of a footer where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey, FileKeys
from secure_bloom.errors import located
from secure_bloom.parquet.footer.chunks import Chunk, ChunkRows, decrypt_chunk
from secure_bloom.parquet.footer.locate import Tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.footer.seal import seal_footer
from secure_bloom.parquet.schema import Leaf, leaves
from testing.thrift import trees
from testing.thrift.metadata import ColumnChunk, ColumnMetaData, FileMetaData, RowGroup
from testing.thrift.views import encoded


@dataclass(frozen=True)
class LiveFooter:
    """The footer that was ``read``, and its structures as views on one tree."""

    read: Footer
    metadata: FileMetaData
    leaves: tuple[Leaf, ...]
    row_groups: tuple[RowGroup, ...]
    column_chunks: tuple[tuple[ColumnChunk, ...], ...]

    @property
    def tail(self) -> Tail:
        return self.read.tail

    @property
    def keys(self) -> FileKeys:
        return self.read.keys

    @property
    def key(self) -> DataKey | None:
        return self.read.key

    @property
    def file_aad(self) -> bytes:
        return self.read.file_aad

    @property
    def is_verified(self) -> bool:
        return self.read.is_verified


def live(footer: Footer) -> LiveFooter:
    """The same footer, to be edited."""
    metadata = FileMetaData(trees.decode(footer.plain)[0])
    row_groups = tuple(metadata.row_groups)
    return LiveFooter(
        read=footer,
        metadata=metadata,
        leaves=leaves(metadata.schema),
        row_groups=row_groups,
        column_chunks=tuple(tuple(group.columns) for group in row_groups),
    )


def live_chunk(footer: LiveFooter, row_group: int, column: int) -> Chunk:
    """The chunk as the package opens it, with a view in the place of its record."""
    listed, group = footer.column_chunks[row_group][column], footer.row_groups[row_group]
    leaf, rows = footer.leaves[column], ChunkRows(row_group, group.ordinal, group.num_rows)
    with located(row_group=row_group, column=leaf.name):
        chunk = decrypt_chunk(listed, leaf, column, rows, footer.read.ciphers)
    meta_data, module = listed.meta_data, listed.encrypted_column_metadata
    if module is not None and chunk.cipher is not None:
        plain = chunk.cipher.decrypt(ModuleType.COLUMN_META_DATA, module)
        meta_data = ColumnMetaData(trees.decode(plain)[0])
    assert meta_data is not None
    return replace(chunk, meta_data=meta_data)


def set_bloom_filter(chunk: Chunk, offset: int, length: int) -> None:
    """Enter the filter's place in every copy of a live chunk's metadata."""
    copies = [chunk.meta_data, chunk.column_chunk.meta_data]
    for meta_data in (copy for copy in copies if copy is not None):
        meta_data.bloom_filter_offset = offset
        meta_data.bloom_filter_length = length
    seal_metadata(chunk)


def seal_metadata(chunk: Chunk) -> None:
    """Encrypt a live chunk's metadata again, if they are a module of their own."""
    if chunk.column_chunk.encrypted_column_metadata is not None and chunk.cipher is not None:
        chunk.column_chunk.encrypted_column_metadata = chunk.cipher.encrypt(
            ModuleType.COLUMN_META_DATA, encoded(chunk.meta_data)
        )


def encode_footer(footer: LiveFooter) -> bytes:
    """The bytes from the footer's start to the end of the file."""
    return seal_footer(
        footer.metadata.encode(),
        footer.tail.mode,
        key=footer.key,
        file_aad=footer.file_aad,
        crypto=footer.tail.clear,
    )
