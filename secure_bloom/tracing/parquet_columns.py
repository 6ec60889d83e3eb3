"""The columns of a Parquet file as Arrow arrays, a few rows at a time.

A page of a few bytes can hold gigabytes: a dictionary with one text of a megabyte, and a run of
references to it. The number of rows that pyarrow decodes at once is computed from the page headers,
before anything is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.parquet.arrow_schemas import check_arrow_texts
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.decoded_bounds import heaviest_value, size_of_pages
from secure_bloom.parquet.dictionary_pages import read_headers
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.logical_arrays import logical_array
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.storage import InputFile
from secure_bloom.storage.inputs import StreamFile
from secure_bloom.tracing.packed import Budget, UnreadError, check_at_once
from secure_bloom.tracing.tabular import ROWS, Column, budgeted, damage

#: Bytes of values that are decoded at a time.
_AT_ONCE: Final = 32 << 20
#: pyarrow takes room for a thousand values of a fixed length, however few are read.
_WIDEST: Final = 32 << 10
#: Lists may take this, or this many times what is stored: all elements may be of one row.
_HARMLESS_LISTS, _TIMES = 128 << 20, 100


class Protected(NamedTuple):
    """A file, with access to the files in its folder, and the keys that may open it."""

    file: InputFile
    keys: KeyResolver


def parquet_columns(
    file: BinaryIO, budget: Budget, protected: Protected | None = None
) -> Iterator[Column]:
    """Yield the columns of a Parquet file. Only columns in clear come with their values.

    An encrypted column is opened but not searched, because values in an encrypted column are no
    leak.
    """
    import pyarrow.parquet as pq

    with damage("a Parquet file"):
        source = StreamFile(file)
        whole, keys = protected or Protected(source, KeyResolver(None))
        footer = read_footer(whole, keys, SchemaCache())
        check_arrow_texts(mark.value for mark in footer.columns.marks)
        # pyarrow has no key: what is in clear below an encrypted footer is decoded here.
        is_sealed = footer.tail.mode is FooterMode.ENCRYPTED
        opened = None if is_sealed else pq.ParquetFile(file)
    for ordinal, leaf in enumerate(footer.leaves):
        yield Column(leaf.name, _values(opened, source, footer, ordinal, budget))


def _values(
    opened: Any, file: StreamFile, footer: Footer, ordinal: int, budget: Budget
) -> Iterator[pa.Array]:
    name = footer.leaves[ordinal].name
    for group in range(len(footer.rows)):
        with damage("a Parquet column that is encrypted, or damaged,"):
            chunk = footer.chunk(group, ordinal)
            if chunk.column_chunk.crypto_metadata is not None:
                continue
            rows = _rows_at_once(file, footer, group, chunk, budget)
            if opened is None and chunk.leaf.type is Type.BOOLEAN:
                # Two values, which are searched for nowhere.
                continue
            if opened is None:
                entries = read_entries(file, chunk).entries
                yield from budgeted((logical_array(chunk.leaf, it) for it in entries), budget)
                continue
            batches = opened.iter_batches(
                rows, row_groups=[group], columns=[name], use_threads=False
            )
            yield from budgeted((column for it in batches for column in it.columns), budget)


def _rows_at_once(
    file: StreamFile, footer: Footer, group: int, chunk: Chunk, budget: Budget
) -> int:
    """Return how many rows of a column to decode at once.

    Adds the bytes of its pages to the budget.
    """
    pages = list(read_headers(file, chunk))
    budget.take(sum(max(page.uncompressed_size, 0) for page in pages))
    check_at_once(max((page.uncompressed_size for page in pages), default=0), "a page")
    if chunk.leaf.is_repeated:
        size = size_of_pages(chunk, pages)
        if size > max(_HARMLESS_LISTS, _TIMES * chunk.meta_data.total_compressed_size):
            raise UnreadError(f"lists that take {size:,} bytes decoded")
        return max(1, min(ROWS, _AT_ONCE * footer.rows[group] // max(size, 1)))
    if (chunk.leaf.width or 0) > _WIDEST:
        raise UnreadError(f"values of {chunk.leaf.width:,} bytes each")
    heaviest = heaviest_value(chunk, pages, _AT_ONCE // ROWS)
    return max(1, min(ROWS, _AT_ONCE // max(heaviest, 1)))
