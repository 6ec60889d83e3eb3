"""Whether a footer accounts for every byte before it, as a writer that ended there would have it.

A footer found inside a file may be a cell's: someone stored a Parquet file, or what looks like one,
in an uncompressed column.  Each page leads to the next one, so the pages of the outer file pass
over the cell.  A footer in the cell cannot account for the page that it lies in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from secure_bloom.adding.append_mark import find_marks
from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import FileKeys
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.footer.locate import MAGIC, read_tail
from secure_bloom.parquet.footer.opened import Chunk, Footer, open_chunk, unlock
from secure_bloom.parquet.pages import chunk_extent, ends_with_its_pages
from secure_bloom.parquet.structures.metadata import ColumnIndex, ColumnMetaData, OffsetIndex
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.storage import InputFile
from secure_bloom.storage.inputs import Extent

_WINDOW = 1024 * 1024


def is_whole_file(file: InputFile, end: int, keys: FileKeys) -> bool:
    """Return whether bytes 0..``end`` are a file of their own.

    Each byte is used, or known to be dead.
    Dead are zeros, and what an earlier append has left between old data and its own filters.
    False as well where a key is not available: then nobody can know.
    """
    try:
        footer = unlock(read_tail(file, end=end), keys)
        return _accounts_for_all(file, footer, keys)
    except SecureBloomError:
        return False


def _accounts_for_all(file: InputFile, footer: Footer, keys: FileKeys) -> bool:
    # Behind the magic at the file's start.
    position = len(MAGIC)
    # The footer's own offset stands last: what lies between the last extent and it must be dead
    # too.
    for start, end in [*sorted(_extents(file, footer, keys)), (footer.tail.offset,) * 2]:
        # Sorted, so an extent that starts earlier overlaps the one before it.
        if start < position or not _is_dead(file, position, start, keys):
            return False
        position = end
    return True


def _extents(file: InputFile, footer: Footer, keys: FileKeys) -> Iterator[Extent]:
    """Yield all parts of the file that the footer names, after checking that each is one."""
    for row_group in range(len(footer.row_groups)):
        for ordinal in range(len(footer.leaves)):
            chunk = open_chunk(footer, row_group, ordinal, keys)
            start, end = _data(file, chunk)
            yield start, end
            # Some writers (Polars, parquet-java until 1.11) repeat the metadata behind the pages.
            if chunk.column_chunk.file_offset == end:
                yield end, end + _metadata_size(file, end, footer.tail.offset)
            yield from _indexes(file, chunk)
            # Decoded and not only measured: the tags prove that these bytes are what the footer
            # calls them.
            stored = read_bloom_filter(file, chunk)
            if stored is not None:
                yield stored.offset, stored.offset + stored.length


def _data(file: InputFile, chunk: Chunk) -> Extent:
    if not ends_with_its_pages(file, chunk):
        raise FormatError("the pages of a column chunk do not end where the chunk does")
    start, length = chunk_extent(chunk)
    return start, start + length


def _metadata_size(file: InputFile, start: int, end: int) -> int:
    stored = file.read_at(start, min(_WINDOW, end - start))
    try:
        _, size = measured_record(ColumnMetaData, stored)
    except FormatError:
        return 0
    return size


def _indexes(file: InputFile, chunk: Chunk) -> Iterator[Extent]:
    entry = chunk.column_chunk
    column_index = (entry.column_index_offset, entry.column_index_length)
    offset_index = (entry.offset_index_offset, entry.offset_index_length)
    for (start, length), module_type, view in (
        (column_index, ModuleType.COLUMN_INDEX, ColumnIndex),
        (offset_index, ModuleType.OFFSET_INDEX, OffsetIndex),
    ):
        if start is None or length is None:
            continue
        stored = file.read_at(start, length)
        plain = stored if chunk.cipher is None else chunk.cipher.decrypt(module_type, stored)
        _, used = measured_record(view, plain)
        # A length that is too large would pass off foreign bytes as the index's.
        if used != len(plain):
            raise FormatError(f"a {view.__name__} has {used} bytes, its length says {len(plain)}")
        yield start, start + length


def _is_dead(file: InputFile, start: int, end: int, keys: FileKeys) -> bool:
    """Return whether nothing is lost with the bytes.

    Zeros, or the end of an earlier file and its mark.
    """
    if _all_pieces(file, start, end, _is_zero):
        return True
    # Only the last mark counts: the appends before it are in the file that ended there.
    for offset, behind in find_marks(file, end, start):
        return _all_pieces(file, behind, end, _is_zero) and is_whole_file(file, offset, keys)
    return False


def _all_pieces(file: InputFile, start: int, end: int, holds: Callable[[bytes], bool]) -> bool:
    return all(
        holds(file.read_at(offset, min(_WINDOW, end - offset)))
        for offset in range(start, end, _WINDOW)
    )


def _is_zero(data: bytes) -> bool:
    return data.count(0) == len(data)
