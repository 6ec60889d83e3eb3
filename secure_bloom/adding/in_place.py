"""Appends to a file in place: the mark, and recovery after a kill.

    old file | mark | filters | zeros | footer
               "secure-bloom append " | offset of the mark (8, LE)

The mark contains its own offset, so no other bytes can be mistaken for it. It distinguishes a torn
append from any other damage, so a file that is damaged in another way is never cut.

A footer that an append superseded ends right before the mark of the next one.  Nothing points to
it. It contains the wrapped keys and the metadata of an earlier time.

``recover`` cuts off the tail that a killed append left. The footer before that tail must account
for every byte before it, because a footer inside a file may also be part of a cell: someone may
have stored a Parquet file, or what looks like one, in an uncompressed column.  Each page leads to
the next page, so the pages of the outer file skip the cell, and a footer in the cell cannot account
for the page that contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError
from secure_bloom.parquet.dictionary_pages import end_of_pages
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import MAGIC, read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.structures.metadata import (
    ColumnIndex,
    ColumnMetaData,
    OffsetIndex,
)
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.storage import (
    InputFile,
    name_of,
    open_input,
    remove_kept,
    truncate_to,
)
from secure_bloom.storage.inputs import Extent

_MARK = b"secure-bloom append "
_MARK_SIZE = len(_MARK) + 8
_WINDOW = 1024 * 1024


def append_mark(offset: int) -> bytes:
    """Return the first bytes of an append that starts at ``offset``, the end of the old file."""
    return _MARK + offset.to_bytes(8, "little")


def find_torn_mark(file: InputFile) -> Iterator[int]:
    """Yield the offsets at which a mark starts that is cut off by the end of the file."""
    last = file.read_at(file.size - min(file.size, _MARK_SIZE), min(file.size, _MARK_SIZE))
    # The whole mark is found by find_marks; here the kill came while it was written.
    for size in range(1, len(last)):
        if append_mark(file.size - size).startswith(last[-size:]):
            yield file.size - size


def find_marks(file: InputFile, end: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each mark in bytes ``first``..``end``, the last mark first."""
    while end > first + _MARK_SIZE - 1:
        start = max(first, end - _WINDOW)
        block = file.read_at(start, end - start)
        at = block.rfind(_MARK)
        while at >= 0:
            # A mark that was copied with a file into a cell of another one names another offset.
            if block.startswith(append_mark(start + at), at):
                yield start + at, start + at + _MARK_SIZE
            at = block.rfind(_MARK, 0, at)
        # Blocks overlap by all but a byte of a mark, so that none falls between two of them.
        end = start + _MARK_SIZE - 1 if start > first else first


def is_whole_file(file: InputFile, end: int, keys: FileKeys) -> bool:
    """Return whether bytes 0..``end`` are a whole file.

    Each byte must be used, or be known to be dead. Dead bytes are zeros, and what an earlier append
    has left between old data and its own filters. Also return False if a key is not available,
    because then this is unknown.
    """
    try:
        footer = unlock(read_tail(file, end=end), keys)
        return _accounts_for_all(file, footer)
    except SecureBloomError:
        return False


def _accounts_for_all(file: InputFile, footer: Footer) -> bool:
    # After the magic at the file's start.
    position = len(MAGIC)
    # The footer's own offset is last: what lies between the last extent and it must be dead
    # too.
    for start, end in [*sorted(_extents(file, footer)), (footer.tail.offset,) * 2]:
        # Sorted, so an extent that starts earlier overlaps the one before it.
        if start < position or not _is_dead(file, position, start, footer.keys):
            return False
        position = end
    return True


def _extents(file: InputFile, footer: Footer) -> Iterator[Extent]:
    """Yield all parts of the file that the footer names, after checking each part."""
    for row_group in range(len(footer.row_groups)):
        for ordinal in range(len(footer.leaves)):
            chunk = footer.chunk(row_group, ordinal)
            start, end = _data(file, chunk)
            yield start, end
            # Some writers (Polars, parquet-java until 1.11) repeat the metadata after the pages.
            if chunk.column_chunk.file_offset == end:
                yield end, end + metadata_size(file, end, footer.tail.offset)
            yield from _indexes(file, chunk)
            # Decoded and not only measured: the tags prove that these bytes are what the footer
            # calls them.
            stored = read_bloom_filter(file, chunk)
            if stored is not None:
                yield stored.offset, stored.offset + stored.length


def _data(file: InputFile, chunk: Chunk) -> Extent:
    start, length = chunk_extent(chunk)
    if end_of_pages(file, chunk) != start + length:
        raise FormatError("the pages of a column chunk do not end where the chunk does")
    return start, start + length


def metadata_size(file: InputFile, start: int, end: int) -> int:
    """Return the size of the ColumnMetaData at ``start``, or 0 if there is none before ``end``."""
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
    """Return whether the bytes can be removed without losing anything.

    They can be removed if they are zeros, or the end of an earlier file and its mark.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The bytes that were cut off the end of a file: ``bytes`` is their number, from ``offset`` on.

    They were saved to the file ``kept``.
    """

    offset: int
    bytes: int
    kept: str

    def forget(self) -> bool:
        """Remove the kept bytes. Return False if the system refuses."""
        try:
            remove_kept(self.kept)
        except SecureBloomError:
            return False
        return True

    def note(self, *, forgotten: bool) -> str:
        """Return the sentence about the cut for a report.

        ``forgotten`` is whether the kept bytes were removed.
        """
        where = "" if forgotten else f"; they are kept in {name_of(self.kept)} beside it"
        return (
            f"{self.bytes} bytes after byte {self.offset}, left by a run that was killed, were "
            f"cut off{where}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A file that is whole now. ``truncation`` is what was cut off, or None."""

    truncation: Truncation | None = None


def recover(path: str, resolver: KeyResolver) -> Recovered | None:
    """Repair a file that was not whole when it was read. Return None if that is impossible.

    Cuts off what a killed ``--in-place`` run left. The run leaves the old file whole before a torn
    tail, so the old end can be found again.  Waits for a run that is still writing.  Raises
    FormatError if a killed run is likely, but bytes of the file could be lost.
    """
    try:
        with open_input(path) as file:
            # Its writer may have finished between the read that failed and now.
            if _ends_whole(file, file.size):
                return Recovered()
            end = find_previous_end(file)
            if end is None:
                return None
            # A mark and a footer alone do not prove it: a cell may hold a whole file with one.
            if not is_whole_file(file, end, file_keys(resolver, file)):
                raise _unsure(path, end)
            # The identity says which file may be cut: only the file that was looked through is
            # known to be torn.
            kept = truncate_to(path, end, file.identity)
            cut = Truncation(offset=end, bytes=file.size - end, kept=kept)
            return Recovered(truncation=cut)
    except FileChangedError:
        # Its writer was alive, and has finished by now.
        return Recovered()


def find_previous_end(file: InputFile) -> int | None:
    """Return the end that the file had before the killed append, or None if it is not found."""
    for offset in _marked_offsets(file):
        if _ends_whole(file, offset):
            return offset
    return None


def _marked_offsets(file: InputFile) -> Iterator[int]:
    """Yield offsets at which an append may have started, from the end of the file backwards.

    A torn mark comes first.
    """
    # First, because a torn mark is at the very end, after all whole ones.
    yield from find_torn_mark(file)
    for offset, _ in find_marks(file, file.size):
        yield offset


def _ends_whole(file: InputFile, end: int) -> bool:
    """Return whether a whole footer ends at ``end``."""
    try:
        tail = read_tail(file, end=end)
        # A cell's bytes can look like a footer, and nothing before this counts its chunks.
        if tail.scan is not None:
            tail.scan.check_chunks()
    except SecureBloomError:
        return False
    return True


def _unsure(path: str, end: int) -> FormatError:
    return FormatError(
        f"the file is not whole; it looks as if a run with --in-place was killed at byte {end}, "
        "but the footer there does not account for every byte before it, so nothing was cut",
        hint="the footer may be one of a file inside a value, or a key may be missing; if you know "
        f"that the file ended there, cut it: truncate -s {end}",
        path=path,
    )
