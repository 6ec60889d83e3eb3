"""The mark at the start of an append: it holds its own offset, so no other bytes are taken for it.

"secure-bloom append " | offset (8, LE)
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.storage import InputFile

_MARK = b"secure-bloom append "
_MARK_SIZE = len(_MARK) + 8
_WINDOW = 1024 * 1024


def append_mark(offset: int) -> bytes:
    """Return the first bytes of an append that starts at ``offset``, where the old file ends."""
    return _MARK + offset.to_bytes(8, "little")


def find_torn_mark(file: InputFile) -> Iterator[int]:
    """Yield the offsets at which a mark starts that the file's end cuts off."""
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
