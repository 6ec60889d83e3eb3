"""Parquet files made in memory, so that pyarrow decodes pages or explains a footer.

    magic | pages of each leaf | footer | length (4, LE) | magic

pyarrow decodes whole files only. The smallest one has a single column in a single row group, or no
row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from secure_bloom.errors import FormatError
from secure_bloom.parquet.arrow_schemas import check_arrow_texts
from secure_bloom.parquet.footer.locate import MAGIC, with_trailer
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    ColumnMetaData,
    CompressionCodec,
    FileMetaData,
    KeyValue,
    PageHeader,
    RowGroup,
    SchemaElement,
    Type,
)
from secure_bloom.parquet.structures.splices import encoded, i32, with_fields
from secure_bloom.parquet.structures.wire_fields import WireType

if TYPE_CHECKING:
    import pyarrow as pa

#: A page as the file has it: its encoded header, and its body as it is stored.
StoredPage = tuple[bytes, bytes | memoryview]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPages:
    """Consecutive data pages, or a dictionary page and data pages, as they are stored in clear.

    An item of ``pages`` may hold several pages, and then has no header for the first of them:
    only the joined bytes matter. ``values`` counts nulls too, but no entry of a dictionary.
    ``encodings`` are those of data pages. ``largest`` is the decompressed size of the largest
    page.
    """

    pages: Sequence[StoredPage]
    values: int
    encodings: frozenset[int]
    largest: int

    @classmethod
    def of(cls, pages: Sequence[Page]) -> StoredPages:
        """Return the pages, decrypted."""
        data = [page for page in pages if not page.is_dictionary]
        return cls(
            pages=[stored_plain(page) for page in pages],
            values=sum(page.num_values for page in data),
            encodings=frozenset(page.encoding for page in data),
            largest=max((page.uncompressed_size for page in pages), default=0),
        )

    @classmethod
    def joined(cls, parts: Sequence[StoredPages]) -> StoredPages:
        """Return all pages of ``parts``, one after the other."""
        return cls(
            pages=[page for part in parts for page in part.pages],
            values=sum(part.values for part in parts),
            encodings=frozenset().union(*(part.encodings for part in parts)),
            largest=max(part.largest for part in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryColumn:
    """The chunk of one leaf: its pages, with the dictionary page first if there is one.

    ``values`` counts nulls too, as ColumnMetaData.num_values does.
    """

    path: Sequence[str]
    type: Type
    codec: CompressionCodec
    values: int
    pages: Sequence[StoredPage]
    has_dictionary: bool


def without_data(footer: bytes, magic: bytes = MAGIC) -> bytes:
    """Return a file that has a footer and nothing else."""
    return magic + with_trailer(footer, magic)


def memory_file(
    schema: Sequence[bytes],
    columns: Sequence[MemoryColumn],
    rows: int,
    *,
    marks: Sequence[bytes] = (),
) -> bytes:
    """Return a file of one row group.

    ``schema`` has the encoded nodes, and ``columns`` the leaves. ``marks`` are encoded KeyValues,
    and become FileMetaData.key_value_metadata.
    """
    pieces: list[bytes | memoryview] = [MAGIC]
    chunks, size, start = [], 0, len(MAGIC)
    for column in columns:
        sizes = [len(header) + len(body) for header, body in column.pages]
        chunks.append(_chunk(column, start, sizes))
        size += sum(sizes)
        pieces += [piece for page in column.pages for piece in page]
        start += sum(sizes)
    group = encoded(RowGroup, columns=chunks, total_byte_size=size, num_rows=rows)
    footer = _footer(schema, [group], rows, marks)
    return b"".join([*pieces, with_trailer(footer, MAGIC)])


def _chunk(column: MemoryColumn, start: int, page_sizes: Sequence[int]) -> bytes:
    meta_data = encoded(
        ColumnMetaData,
        type=column.type,
        # Readers do not look at the list: each page names its own encoding.
        encodings=[],
        path_in_schema=column.path,
        codec=column.codec,
        num_values=column.values,
        total_uncompressed_size=sum(page_sizes),
        total_compressed_size=sum(page_sizes),
        data_page_offset=start + (page_sizes[0] if column.has_dictionary else 0),
        # Left out if the chunk has none: 0 would be a place to some readers.
        dictionary_page_offset=start if column.has_dictionary else None,
    )
    # file_offset is required and deprecated; 0 means that no metadata are outside the footer
    # (parquet.thrift, ColumnChunk).
    return encoded(ColumnChunk, file_offset=0, meta_data=meta_data)


def _footer(
    schema: Sequence[bytes], row_groups: Sequence[bytes], rows: int, marks: Sequence[bytes]
) -> bytes:
    return encoded(
        FileMetaData,
        version=2,
        schema=schema,
        num_rows=rows,
        row_groups=row_groups,
        key_value_metadata=marks or None,
    )


def stored_plain(page: Page) -> StoredPage:
    """Return a page as it would be in a file that is not encrypted.

    It has the size of the body in clear, and no checksum of encrypted bytes.
    """
    body = page.body()
    if page.cipher is None:
        return page.encoded_header, body
    return _plain_header(page.encoded_header, len(body)), body


#: The type of a page, its size, and the size of its encrypted body.
PageSizes = tuple[int, int, int]


def plain_pages(
    headers: Iterable[bytes], sizes: Iterable[PageSizes], bodies: Iterable[bytes]
) -> list[bytes]:
    """Return each header, with the size of its body in clear, and the body.

    Raises an error if bytes follow the structure of a header.
    """
    parts: list[bytes] = []
    for header, own, body in zip(headers, sizes, bodies, strict=True):
        stored, clear, end = _first_fields(own, len(body))
        # Setting one field takes longer than decrypting a small page, and almost all headers begin
        # with these fields.
        if header.startswith(stored) and header[end] != _CRC_FOLLOWS:
            parts += (clear + header[end:], body)
        else:
            parts += (_plain_header(header, len(body)), body)
    return parts


def _plain_header(header: bytes, size: int) -> bytes:
    # The checksum is of the bytes as they were stored.
    new = {PageHeader.compressed_page_size.id: i32(size), PageHeader.crc.id: None}
    return with_fields(header, new)


#: The header of the field after the compressed size, if it is a checksum.
_CRC_FOLLOWS = 0x10 | WireType.I32


@lru_cache(maxsize=4096)
def _first_fields(sizes: PageSizes, clear_size: int) -> tuple[bytes, bytes, int]:
    """Return the first fields of a page header, encrypted and in clear, and their length."""
    kind, plain_size, stored_size = sizes
    stored, clear = (
        # Without the byte that ends the structure.
        encoded(
            PageHeader,
            type=kind,
            uncompressed_page_size=plain_size,
            compressed_page_size=size,
        )[:-1]
        for size in (stored_size, clear_size)
    )
    return stored, clear, len(stored)


def arrow_schema(schema: Sequence[SchemaElement], marks: Sequence[KeyValue]) -> pa.Schema:
    """Return the Arrow schema that pyarrow makes of a file with this schema and no rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_arrow_texts(mark.value for mark in marks)
    kept = [encoded(KeyValue, key=mark.key, value=mark.value or "") for mark in marks]
    footer = _footer([node.encoded for node in schema], [], 0, kept)
    file = pa.BufferReader(without_data(footer))
    try:
        arrow = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").schema_arrow
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise FormatError("pyarrow cannot make an Arrow schema of the file's schema") from None
    return arrow.remove_metadata()
