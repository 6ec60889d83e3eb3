"""Read some rows of one column of a row group, only from the pages that have them.

The pages are decrypted here and put into a Parquet file in memory that has this one column.  It has
the schema of the original file, so pyarrow decodes the same values from both.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.errors import FormatError, located
from secure_bloom.parquet.decoded_bounds import size_of_pages
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS, read_dictionary_page
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.memory_files import MemoryColumn, memory_file, stored_plain
from secure_bloom.parquet.page_index import PageSpan, offset_index_extent, page_spans
from secure_bloom.parquet.pages import Page, data_page, read_pages
from secure_bloom.parquet.structures.metadata import KeyValue, SchemaElement
from secure_bloom.parquet.structures.splices import encoded
from secure_bloom.reading.table.coalesced_reads import read_extents
from secure_bloom.storage import InputFile
from secure_bloom.storage.memory_budget import refuse_beyond

Ranges = Sequence[tuple[int, int]]


class ReadWholeError(Exception):
    """A column has a page index, but must be read whole.

    Either most of its pages are wanted, or one of them contradicts the index.
    """


def read_slices(
    file: InputFile, footer: Footer, row_group: int, name: str, ranges: Ranges
) -> pa.ChunkedArray | None:
    """Return the rows in ``ranges`` of a top-level column, or None if no page can be left out.

    That is so if the column has more than one leaf, or no offset index that fits it.  Raises
    ReadWholeError.  Other errors carry row group and column.
    """
    ordinals = footer.columns.below(name)
    if len(ordinals) != 1:
        return None
    chunk = footer.chunk_to_read(row_group, ordinals[0])
    extent = offset_index_extent(chunk, file.size)
    if extent is None:
        return None
    with located(path=footer.path, row_group=row_group, column=chunk.leaf.name):
        spans = page_spans(chunk, file.read_at(*extent))
        if spans is None:
            return None
        wanted = _wanted(spans, ranges)
        if 2 * len(wanted) > len(spans):
            raise ReadWholeError
        return _decode(file, footer, chunk, {i: spans[i] for i in wanted}, ranges)


def _wanted(spans: Sequence[PageSpan], ranges: Ranges) -> list[int]:
    """Return the ordinals of the pages that have rows of ``ranges``. Both are ascending."""
    found, position = [], 0
    for ordinal, span in enumerate(spans):
        while position < len(ranges) and ranges[position][1] <= span.start:
            position += 1
        if position == len(ranges):
            break
        if ranges[position][0] < span.end and span.start < span.end:
            found.append(ordinal)
    return found


def read_column(file: InputFile, footer: Footer, row_group: int, name: str) -> pa.ChunkedArray:
    """Return all rows of a top-level column, without a footer that pyarrow must believe.

    Errors carry row group and column.
    """
    columns = []
    for ordinal in footer.columns.below(name):
        chunk = footer.chunk_to_read(row_group, ordinal)
        with located(path=footer.path, row_group=row_group, column=chunk.leaf.name):
            columns.append((chunk, read_pages(file, chunk)))
    rows = footer.row_groups[row_group].num_rows
    with located(path=footer.path, row_group=row_group, column=name):
        return _read(_file(footer, name, columns, rows), rows)


def _decode(
    file: InputFile,
    footer: Footer,
    chunk: Chunk,
    spans: dict[int, PageSpan],
    ranges: Ranges,
) -> pa.ChunkedArray:
    stored = read_extents(
        file, {ordinal: (span.offset, span.length) for ordinal, span in spans.items()}
    )
    pages = [data_page(chunk, stored[ordinal], ordinal) for ordinal in spans]
    if not all(
        _is_as_told(chunk, page, span) for page, span in zip(pages, spans.values(), strict=True)
    ):
        raise ReadWholeError
    uses_dictionary = any(page.encoding in DICTIONARY_ENCODINGS for page in pages)
    dictionary = read_dictionary_page(file, chunk) if uses_dictionary else None
    every = [*([] if dictionary is None else [dictionary]), *pages]
    refuse_beyond(size_of_pages(chunk, every), "its pages")
    rows = sum(span.end - span.start for span in spans.values())
    column = _read(_file(footer, chunk.leaf.path[0], [(chunk, every)], rows), rows)
    return _cut(column, list(spans.values()), ranges)


def _is_as_told(chunk: Chunk, page: Page, span: PageSpan) -> bool:
    """Return whether a page's own header agrees with the index."""
    if page.is_dictionary:
        return False
    return chunk.leaf.is_repeated or page.num_values == span.end - span.start


def _read(content: bytes, rows: int) -> pa.ChunkedArray:
    try:
        column = (
            pq.ParquetFile(
                pa.BufferReader(content), pre_buffer=False, coerce_int96_timestamp_unit="us"
            )
            .read()
            .column(0)
        )
    except (pa.ArrowException, OSError):
        # The cause is left out: its text may quote a value.
        raise FormatError("pyarrow cannot decode the column's pages") from None
    if len(column) != rows:
        raise FormatError(f"the pages hold {len(column)} rows, wanted {rows}")
    return column


def _cut(column: pa.ChunkedArray, spans: Sequence[PageSpan], ranges: Ranges) -> pa.ChunkedArray:
    """Return the rows in ``ranges`` from a column that has only the rows of ``spans``."""
    parts, seen = [], 0
    for span in spans:
        for start, end in ranges:
            low, high = max(start, span.start), min(end, span.end)
            if low < high:
                parts.append(column.slice(seen + low - span.start, high - low))
        seen += span.end - span.start
    return pa.chunked_array([c for part in parts for c in part.chunks], column.type)


def _file(
    footer: Footer,
    name: str,
    columns: Sequence[tuple[Chunk, Sequence[Page]]],
    rows: int,
) -> bytes:
    chunks = [_memory_column(chunk, pages) for chunk, pages in columns]
    return memory_file(_schema(footer, name), chunks, rows, marks=[_arrow_mark(footer, name)])


def _memory_column(chunk: Chunk, pages: Sequence[Page]) -> MemoryColumn:
    return MemoryColumn(
        path=chunk.leaf.path,
        type=chunk.meta_data.type,
        codec=chunk.meta_data.codec,
        values=sum(page.num_values for page in pages if not page.is_dictionary),
        pages=[stored_plain(page) for page in pages],
        has_dictionary=bool(pages) and pages[0].is_dictionary,
    )


def _arrow_mark(footer: Footer, name: str) -> bytes:
    """Return the entry with the writer's Arrow type, which the Parquet schema lacks in part."""
    arrow = pa.schema([footer.columns.arrow.field(name)]).serialize().to_pybytes()
    return encoded(KeyValue, key="ARROW:schema", value=base64.b64encode(arrow))


def _schema(footer: Footer, name: str) -> list[bytes]:
    """Return the schema's root, and the nodes of one top-level column."""
    root = encoded(SchemaElement, name="schema", num_children=1)
    return [root, *(node.encoded for node in footer.columns.nodes[name])]
