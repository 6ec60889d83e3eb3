"""Find the bytes of a file that nothing in its footer refers to, so that they may be overwritten.

Offsets and lengths in a footer are claims.  A filter may be inside a page or inside the footer, two
columns may share one filter, and pages may be longer than their chunk says.  Bytes are free only if
no page, index, filter, dictionary or repeated metadata of any column and row group touches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from operator import add

from secure_bloom.adding.in_place import find_marks, metadata_size
from secure_bloom.bloom.stored import filter_extent
from secure_bloom.errors import FormatError, KeyUnavailableError, SecureBloomError
from secure_bloom.parquet.chunk_fields import EXTENT_SLOTS, read_extents
from secure_bloom.parquet.dictionary_pages import end_of_pages
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.parquet.page_index import decode_offset_index
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.structures.metadata import ColumnChunk
from secure_bloom.storage import APPEND_ALIGNMENT, InputFile
from secure_bloom.storage.inputs import Extent

#: The number of an absent field: sums with it are negative too.
_ABSENT = -(1 << 63)
#: Row group and column of the chunks whose filters are replaced. A damaged filter has no extent.
Replaced = Mapping[tuple[int, int], Extent | None]


def reclaimed_end(file: InputFile, footer: Footer, replaced: Replaced) -> int:
    """Return the offset where new filters may start if the file is replaced.

    The space of replaced filters right before the footer is used again. The space of everything
    that earlier appends have left is used again too: superseded footers, and filters that nothing
    refers to. If an extent in the footer's metadata overlaps the footer itself, the whole file
    stays.
    """
    limit = footer.tail.offset
    starts = {extent[1]: extent[0] for extent in replaced.values() if extent is not None}
    end = _walked_back(limit, starts)
    # Appends end on a block: most files without one are known by it, and not looked through.
    old = [] if file.size % APPEND_ALIGNMENT else find_old_footers(file, footer)
    if end == limit and not old:
        return file.size if reaches_into_footer(footer) else limit
    try:
        kept = max((end for _, end in _kept_extents(file, footer, replaced)), default=0)
    except KeyUnavailableError:
        # The filters of that column are not known.
        return limit
    except SecureBloomError:
        # A page or an index that contradicts its chunk may be anywhere.
        return file.size
    if kept > limit:
        return file.size
    # From the first superseded footer on, everything was written by appends.
    return max(kept, min(end, _walked_back(old[0][0], starts)) if old else end)


def find_old_footers(file: InputFile, footer: Footer) -> list[Extent]:
    """Return each old footer with the mark after it, in file order. No key is needed."""
    # A cell may hold a file with marks of its own: only marks after all data count.
    first, found, limit = _known_end(footer), [], footer.tail.offset
    filters = list(_clear_filters(file, footer))
    for mark, behind in find_marks(file, limit, first):
        try:
            start = read_tail(file, end=mark).offset
        except SecureBloomError:
            continue
        # A footer that says it begins before the mark in front of it is none.  The bits of a filter
        # may look like a footer.
        is_in_filter = any(begin < behind and start < end for begin, end in filters)
        if first <= start and behind <= limit and not is_in_filter:
            found.append((start, behind))
            limit = start
    return found[::-1]


def footers_to_blank(file: InputFile, footer: Footer) -> list[Extent]:
    """Return the old footers of :func:`find_old_footers`, which a rotation overwrites with zeros.

    Raises FormatError if one of them may be a part of a page or an index in clear.  A page that is
    longer than its chunk says can hold what looks like an old footer; ciphertext cannot.
    """
    old = find_old_footers(file, footer)
    if not old:
        return old
    for row_group, chunks in enumerate(footer.column_chunks):
        for column, entry in enumerate(chunks):
            if entry.crypto_metadata is None:
                chunk = footer.chunk(row_group, column)
                used = [*_data(file, chunk, footer.tail.offset), *_indexes(file, chunk)]
                if any(begin < end and start < stop for begin, stop in used for start, end in old):
                    raise FormatError("a column chunk reaches into what looks like an old footer")
    return old


def _walked_back(end: int, starts: Mapping[int, int]) -> int:
    """Return the end of the part that stays: go back from ``end`` over adjacent free filters.

    ``starts`` maps the end of each free filter to its start.
    """
    while end in starts:
        end = starts[end]
    return end


def reaches_into_footer(footer: Footer) -> bool:
    """Return whether metadata in clear name bytes that end inside the footer or after it.

    Pages, page indexes or a filter may be there, for example in a value of key-value metadata.
    """
    offsets = footer.scan.numbers[-(len(footer.row_groups) * len(footer.leaves)) or None :]
    rows: Sequence[int] | None = read_extents(footer.plain, offsets, len(offsets))
    if rows is None:
        rows = [it for chunks in footer.column_chunks for chunk in chunks for it in _numbers(chunk)]
    return max(_ends(rows), default=0) > footer.tail.offset


def _ends(rows: Sequence[int]) -> Iterable[int]:
    """Return the end of each part of all chunks, from the rows of :func:`.read_extents`.

    The ends are computed for one kind of part at a time, which is much faster than chunk by chunk.
    """
    data, places, sizes, index_pages, *named = [
        rows[it::EXTENT_SLOTS] for it in range(EXTENT_SLOTS)
    ]
    # The place of a dictionary is zero or absent if there is none.
    begins = [place if 0 < place < it else it for it, place in zip(data, places, strict=True)]
    # An absent length is a very small number. Whatever is named has at least one byte.
    lengths = [[length if length > 0 else 1 for length in of_part] for of_part in named[1::2]]
    named_ends = (map(add, *part) for part in zip(named[::2], lengths, strict=True))
    return chain(map(add, begins, sizes), index_pages, *named_ends)


def _numbers(chunk: ColumnChunk) -> list[int]:
    """Return the offsets and lengths of a chunk in the slots of :func:`.read_extents`.

    Absent ones are -2**63.
    """
    meta = chunk.meta_data
    of_meta_data = (
        (None,) * 6
        if meta is None
        else (
            meta.data_page_offset,
            meta.dictionary_page_offset,
            meta.total_compressed_size,
            meta.index_page_offset,
            meta.bloom_filter_offset,
            meta.bloom_filter_length,
        )
    )
    of_chunk = (
        chunk.offset_index_offset,
        chunk.offset_index_length,
        chunk.column_index_offset,
        chunk.column_index_length,
    )
    return [_ABSENT if number is None else number for number in (*of_meta_data, *of_chunk)]


def _clear_filters(file: InputFile, footer: Footer) -> Iterator[Extent]:
    """Yield the extents of the filters of columns in clear."""
    for row_group, chunks in enumerate(footer.column_chunks):
        for column, entry in enumerate(chunks):
            if entry.crypto_metadata is None and entry.file_path is None:
                # A filter that cannot be read has no place.
                with suppress(SecureBloomError):
                    extent = filter_extent(file, footer.chunk(row_group, column))
                    if extent is not None:
                        yield extent[0], sum(extent)


def _kept_extents(file: InputFile, footer: Footer, replaced: Replaced) -> Iterator[Extent]:
    """Yield everything that the footer refers to and that stays.

    Raises FormatError if a chunk's pages do not end where the chunk does, or an offset or a length
    is impossible. Raises KeyUnavailableError if the key of a column is not available.
    """
    for row_group, chunks in enumerate(footer.column_chunks):
        for column, _ in enumerate(chunks):
            chunk = footer.chunk(row_group, column)
            yield from _data(file, chunk, footer.tail.offset)
            yield from _indexes(file, chunk)
            # A filter that goes holds nothing back, unless another column has it too.
            if (row_group, column) not in replaced:
                yield from _filters(file, chunk)


def _data(file: InputFile, chunk: Chunk, limit: int) -> Iterator[Extent]:
    start, length = chunk_extent(chunk)
    yield start, start + length
    if end_of_pages(file, chunk) != start + length:
        raise FormatError("the pages of a column chunk do not end where the chunk does")
    # Nobody writes index pages, and nothing says how long one is.
    if chunk.meta_data.index_page_offset:
        yield chunk.meta_data.index_page_offset, limit
    # Some writers (Polars, parquet-java until 1.11) repeat the metadata after the pages.
    repeated = chunk.column_chunk.file_offset
    if repeated >= start + length:
        yield repeated, repeated + metadata_size(file, repeated, max(limit, repeated))
    clear = chunk.column_chunk.meta_data
    # Readers without the column's key take the copy in clear (Encryption.md 5.5).
    if clear is not None and clear is not chunk.meta_data:
        starts = (clear.data_page_offset, clear.dictionary_page_offset or 0)
        yield min(starts), max(starts) + clear.total_compressed_size


def _indexes(file: InputFile, chunk: Chunk) -> Iterator[Extent]:
    yield from index_extents(chunk.column_chunk)
    entry = chunk.column_chunk
    if entry.offset_index_offset is None or entry.offset_index_length is None:
        return
    stored = file.read_at(entry.offset_index_offset, entry.offset_index_length)
    for page in decode_offset_index(chunk, stored).page_locations:
        yield page.offset, page.offset + page.compressed_page_size


def index_extents(entry: ColumnChunk) -> Iterator[Extent]:
    """Yield the extents of a chunk's page indexes, as the footer says."""
    for start, length in (
        (entry.offset_index_offset, entry.offset_index_length),
        (entry.column_index_offset, entry.column_index_length),
    ):
        if start is not None:
            yield start, start + (length or 0)


def _filters(file: InputFile, chunk: Chunk) -> Iterator[Extent]:
    extent = filter_extent(file, chunk)
    if extent is not None:
        yield extent[0], sum(extent)
    clear = chunk.column_chunk.meta_data
    if clear is None or clear is chunk.meta_data or clear.bloom_filter_offset is None:
        return
    end = clear.bloom_filter_offset + max(clear.bloom_filter_length or 1, 1)
    yield end - 1, end


def _known_end(footer: Footer) -> int:
    """Return the end of the pages and indexes that the footer shows without keys of columns."""
    ends = [0]
    for group, chunks in zip(footer.row_groups, footer.column_chunks, strict=True):
        ends.append((group.file_offset or 0) + (group.total_compressed_size or 0))
        for chunk in chunks:
            ends += [end for _, end in index_extents(chunk)]
            # None where the column's metadata is encrypted under its own key.
            meta = chunk.meta_data
            if meta is not None:
                starts = filter(None, (meta.dictionary_page_offset, meta.data_page_offset))
                ends.append(min(starts, default=0) + meta.total_compressed_size)
    # Offsets may lie, and none can lead beyond the footer that names it.
    return min(max(ends), footer.tail.offset)
