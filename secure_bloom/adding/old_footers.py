"""Footers that appends have superseded: each ends right before the mark of the next append.

    data | old footer | mark | filters | zeros | footer

Nothing points to them.  They hold the wrapped keys and the metadata of an earlier time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from secure_bloom.adding.append_mark import find_marks
from secure_bloom.bloom.stored import filter_extent
from secure_bloom.encryption.file_keys import FileKeys
from secure_bloom.errors import KeyUnavailableError, SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, open_chunk
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.structures.metadata import ColumnChunk
from secure_bloom.storage import APPEND_ALIGNMENT, InputFile
from secure_bloom.storage.inputs import Extent


def find_old_footers(file: InputFile, footer: Footer) -> list[Extent]:
    """Return each old footer and the mark after it, in the file's order; no key is needed."""
    # A cell may hold a file with marks of its own: only what stands behind all data counts.
    first, found, limit = _known_end(footer), [], footer.tail.offset
    for mark, behind in find_marks(file, limit, first):
        try:
            start = read_tail(file, end=mark).offset
        except SecureBloomError:
            continue
        # A footer that says it begins before the mark in front of it is none.
        if first <= start and behind <= limit:
            found.append((start, behind))
            limit = start
    return found[::-1]


def reclaimed_end(
    file: InputFile, footer: Footer, keys: FileKeys, replaced: Mapping[int, int]
) -> int:
    """Return the offset where new filters may start if the file is replaced.

    ``replaced`` has the filters that go, their starts by their ends.  The room of those right
    before the footer is used again.  So is the room of everything that appends have left:
    superseded footers, and filters that nothing points to.
    """
    end = _walked_back(footer.tail.offset, replaced)
    # Appends end on a block: most files without one are known by it, and not looked through.
    old = [] if file.size % APPEND_ALIGNMENT else find_old_footers(file, footer)
    kept = _kept_end(file, footer, keys, replaced) if old else None
    if kept is None:
        return end
    # From the first superseded footer on, everything is ours.
    first = old[0][0]
    return min(end, _walked_back(first, replaced) if kept <= first else kept)


def _walked_back(end: int, replaced: Mapping[int, int]) -> int:
    """From ``end`` backwards, filter by filter; a gap or a filter that stays ends it."""
    while end in replaced:
        end = replaced[end]
    return end


def _known_end(footer: Footer) -> int:
    """Return the end of pages and indexes that the footer shows without keys of columns."""
    ends = [0]
    for group, chunks in zip(footer.row_groups, footer.column_chunks, strict=True):
        ends.append((group.file_offset or 0) + (group.total_compressed_size or 0))
        for chunk in chunks:
            ends += _index_ends(chunk)
            # None where the column's metadata is encrypted under its own key.
            meta = chunk.meta_data
            if meta is not None:
                starts = filter(None, (meta.dictionary_page_offset, meta.data_page_offset))
                ends.append(min(starts, default=0) + meta.total_compressed_size)
    # Offsets may lie, and none can lead behind the footer that names it.
    return min(max(ends), footer.tail.offset)


def _kept_end(
    file: InputFile, footer: Footer, keys: FileKeys, replaced: Mapping[int, int]
) -> int | None:
    """Return the end of the last thing that the footer points to and that stays.

    None where a key is not available: the filters of that column are not known.
    """
    ends = [0]
    try:
        for row_group, chunks in enumerate(footer.column_chunks):
            for column, entry in enumerate(chunks):
                chunk = open_chunk(footer, row_group, column, keys)
                ends += [sum(chunk_extent(chunk)), *_index_ends(entry)]
                extent = filter_extent(file, chunk)
                # A filter that goes holds nothing back; one that stays does, wherever it stands.
                if extent is not None and replaced.get(sum(extent)) != extent[0]:
                    ends.append(sum(extent))
    except KeyUnavailableError:
        return None
    return max(ends)


def _index_ends(chunk: ColumnChunk) -> Iterator[int]:
    yield (chunk.offset_index_offset or 0) + (chunk.offset_index_length or 0)
    yield (chunk.column_index_offset or 0) + (chunk.column_index_length or 0)
