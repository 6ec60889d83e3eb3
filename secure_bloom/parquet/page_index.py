"""The page index of a column chunk: where it is, and its statements about the data pages.

    ColumnIndex:  for every data page its bounds           module type 6 of an encrypted column
    OffsetIndex:  for every data page its place and rows   module type 7

Parquet, "Page Index".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.structures.declarations import Structure
from secure_bloom.parquet.structures.metadata import ColumnIndex, OffsetIndex, RowGroup
from secure_bloom.parquet.structures.records import decode_record

V = TypeVar("V", bound=Structure)
#: The offset of the first byte, and the number of bytes.
OffsetAndLength = tuple[int, int]

#: Far more than the index of any chunk; its length is a number of the footer.
_MAX_INDEX = 64 * 1024 * 1024
#: Page indexes of an object are fetched together up to this many bytes.
_MOST_FETCHED = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSpan:
    """One data page: its bytes in the file, header included, and its rows in the row group."""

    offset: int
    length: int
    start: int
    end: int


def column_index_extent(chunk: Chunk, size: int) -> OffsetAndLength | None:
    """Return the offset and length of the chunk's column index in a file of ``size`` bytes.

    Return None if the chunk has no column index inside the file.
    """
    column = chunk.column_chunk
    return _extent(column.column_index_offset, column.column_index_length, size)


def offset_index_extent(chunk: Chunk, size: int) -> OffsetAndLength | None:
    """Return the offset and length of the chunk's offset index, or None."""
    column = chunk.column_chunk
    return _extent(column.offset_index_offset, column.offset_index_length, size)


def _extent(offset: int | None, length: int | None, size: int) -> OffsetAndLength | None:
    if offset is None or length is None:
        return None
    # No error, because an index only saves work: readers of the chunk do without it.
    is_inside = offset >= 0 and 0 < length <= min(_MAX_INDEX, size - offset)
    return (offset, length) if is_inside else None


def indexes_extent(row_groups: Sequence[RowGroup], size: int) -> OffsetAndLength | None:
    """Return offset and length of all page indexes of a file of ``size`` bytes.

    Writers place them together, after the pages, by row group and column.  Return
    None if the first and the last column do not show that, and for more than 1 MiB.
    """
    if not row_groups or not row_groups[0].columns:
        return None
    first, last = row_groups[0].columns[0], row_groups[-1].columns[-1]
    group, places = row_groups[-1], (first.column_index_offset, first.offset_index_offset)
    starts = [place for place in places if place is not None]
    end = (last.offset_index_offset or 0) + (last.offset_index_length or 0)
    if not starts or group.file_offset is None or group.total_compressed_size is None:
        return None
    start = min(starts)
    is_behind = start >= group.file_offset + group.total_compressed_size > 0
    is_inside = 0 < end - start <= _MOST_FETCHED and end <= size
    return (start, end - start) if is_behind and is_inside else None


def decode_column_index(chunk: Chunk, content: bytes | memoryview) -> ColumnIndex:
    """Return the chunk's column index.

    Raises FormatError for damaged bytes, IntegrityError for altered ones.
    """
    return _decode(ColumnIndex, ModuleType.COLUMN_INDEX, chunk, content)


def decode_offset_index(chunk: Chunk, content: bytes | memoryview) -> OffsetIndex:
    """Return the chunk's offset index. Raises the errors of :func:`decode_column_index`."""
    return _decode(OffsetIndex, ModuleType.OFFSET_INDEX, chunk, content)


def _decode(view: type[V], module_type: ModuleType, chunk: Chunk, content: bytes | memoryview) -> V:
    plain = content if chunk.cipher is None else chunk.cipher.decrypt(module_type, content)
    return decode_record(view, plain)


def page_spans(chunk: Chunk, content: bytes | memoryview) -> list[PageSpan] | None:
    """Return the chunk's data pages by its offset index.

    Return None for an index that contradicts the chunk. Raises IntegrityError for a module that
    does not authenticate.
    """
    # Loaded where an index is used: a probe asks for the extents of indexes alone.
    from secure_bloom.parquet.chunk_contradictions import in_offset_index

    try:
        index = decode_offset_index(chunk, content)
        # Rows are left out by these numbers, so all of them must fit the chunk.
        if any(in_offset_index(chunk, index)):
            return None
    except FormatError:
        return None
    locations = index.page_locations
    # A page ends where the next one begins: OffsetIndex has no number of rows.
    ends = [*(location.first_row_index for location in locations[1:]), chunk.num_rows]
    return [
        PageSpan(
            offset=location.offset,
            length=location.compressed_page_size,
            start=location.first_row_index,
            end=end,
        )
        for location, end in zip(locations, ends, strict=True)
    ]
