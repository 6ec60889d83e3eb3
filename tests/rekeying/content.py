"""What a file holds, whatever its protection: it must be equal before and after keys changed.

Page headers lack the size as stored and its checksum, metadata lack offsets and sizes: these may
change.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from secure_bloom.bloom.stored import filter_extent, read_bloom_filter
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.kms import ExplicitKeys, Keyring, KmsClient
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import column_index_extent, offset_index_extent, page_spans
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.structures.wire_fields import find_fields
from secure_bloom.storage import InputFile
from testing.surgery import opened
from testing.thrift.views import encoded

Keys = Keyring | KmsClient | ExplicitKeys | None
#: PageHeader.compressed_page_size, crc.
_OF_PAGES = {3, 4}
#: ColumnMetaData: sizes and offsets of pages and of the filter.
_OF_CHUNKS = {6, 7, 9, 11, 14, 15}
#: FileMetaData: row groups, the signature's algorithm and key.
_OF_FILES = {4, 8, 9}


def content(path: Path, keys: Keys = None) -> dict[str, Any]:
    """Schema, texts, row groups, pages, statistics, indexes and filters, as bytes."""
    with opened(path, keys) as it:
        chunks = [
            [_chunk(it.file, it.chunk(group, leaf.name)) for leaf in it.footer.leaves]
            for group in range(len(it.footer.row_groups))
        ]
        rows = [group.num_rows for group in it.footer.row_groups]
        return {
            "file": dict(_fields(it.footer.metadata.encode(), _OF_FILES)),
            "rows": rows,
            "chunks": chunks,
        }


def _fields(encoded: bytes, without: set[int]) -> Iterator[tuple[int, bytes]]:
    for field_id, field in find_fields(encoded).by_id.items():
        if field_id not in without:
            yield field_id, encoded[field.value : field.end]


def _chunk(file: InputFile, chunk: Chunk) -> dict[str, Any]:
    has_filter = filter_extent(file, chunk) is not None
    found = read_bloom_filter(file, chunk) if has_filter else None
    return {
        "metadata": dict(_fields(encoded(chunk.meta_data), _OF_CHUNKS)),
        "pages": [
            (dict(_fields(page.encoded_header, _OF_PAGES)), bytes(page.body()))
            for page in read_pages(file, chunk)
        ],
        "filter": None if found is None else found.filter.to_bytes(),
        "column index": _index(file, chunk),
        "rows of pages": _spans(file, chunk),
    }


def _index(file: InputFile, chunk: Chunk) -> bytes | None:
    extent = column_index_extent(chunk, file.size)
    if extent is None:
        return None
    stored = file.read_at(*extent)
    plain = stored
    if chunk.cipher is not None:
        plain = chunk.cipher.decrypt(ModuleType.COLUMN_INDEX, stored)
    return plain[: find_fields(plain).stop + 1]


def _spans(file: InputFile, chunk: Chunk) -> list[Any] | None:
    extent = offset_index_extent(chunk, file.size)
    if extent is None:
        return None
    return [(span.start, span.end) for span in page_spans(chunk, file.read_at(*extent)) or ()]
