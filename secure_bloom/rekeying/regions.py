"""The parts of a file that belong to column chunks: pages, indexes and filters, in file order."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import OffsetAndLength
from secure_bloom.parquet.pages import chunk_extent


class RegionKind(enum.IntEnum):
    """The kinds of regions. A chunk's offset index lists its pages, so it comes after them."""

    PAGES = 0
    FILTER = 1
    COLUMN_INDEX = 2
    OFFSET_INDEX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """``length`` bytes from ``offset`` that belong to one chunk, given by its ordinals."""

    offset: int
    length: int
    kind: RegionKind
    chunk: Chunk
    column: int

    @property
    def key(self) -> tuple[int, int]:
        """The ordinals of row group and column."""
        return self.chunk.row_group, self.column

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.length


def regions(chunks: Iterable[tuple[int, Chunk, OffsetAndLength | None]], end: int) -> list[Region]:
    """Return all regions of chunks, sorted by offset.

    ``end`` is where the footer starts.  Raises FormatError for regions that overlap or are outside
    the data, and for an offset index before the pages that it lists.
    """
    found = sorted(
        (
            region
            for column, chunk, extent in chunks
            for region in _chunk_regions(column, chunk, extent)
        ),
        # If two start at one offset, the one without bytes comes first, whatever its kind.
        key=lambda region: (region.offset, region.length > 0, region.kind),
    )
    # After the magic.
    done = 4
    seen: set[tuple[int, int]] = set()
    for region in found:
        # Shared bytes would be sealed under the keys of two columns.
        if region.length < 0 or region.offset < done or region.end > end:
            raise FormatError(
                f"{region.kind.name} at {region.offset} with {region.length} bytes is outside "
                "the file's data, or overlaps another part",
                row_group=region.chunk.row_group,
                column=region.chunk.leaf.name,
            )
        if region.kind is RegionKind.PAGES:
            seen.add(region.key)
        # It is written anew with the places of its pages, which are known when those were written.
        elif region.kind is RegionKind.OFFSET_INDEX and region.key not in seen:
            raise FormatError("an offset index comes before the pages that it lists")
        done = region.end
    return found


def _chunk_regions(
    column: int, chunk: Chunk, bloom_filter: OffsetAndLength | None
) -> Iterator[Region]:
    start, length = chunk_extent(chunk)
    yield Region(offset=start, length=length, kind=RegionKind.PAGES, chunk=chunk, column=column)
    column_chunk = chunk.column_chunk
    places = (
        (RegionKind.FILTER, *(bloom_filter or (None, None))),
        (
            RegionKind.COLUMN_INDEX,
            column_chunk.column_index_offset,
            column_chunk.column_index_length,
        ),
        (
            RegionKind.OFFSET_INDEX,
            column_chunk.offset_index_offset,
            column_chunk.offset_index_length,
        ),
    )
    for kind, offset, size in places:
        # With one of the two alone no reader can find the part, so it is left behind.
        if offset is not None and size is not None:
            yield Region(offset=offset, length=size, kind=kind, chunk=chunk, column=column)
