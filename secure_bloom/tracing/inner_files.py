"""Find the files that begin inside another file, by the magic bytes of their formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import BinaryIO, Final

import pyarrow as pa

from secure_bloom.running.memory_budget import memory_budget
from secure_bloom.tracing.arrow_columns import size_of_schema
from secure_bloom.tracing.content import HEAD, Opened, Span, Stream, size_of, within
from secure_bloom.tracing.packed import (
    BEGINNINGS,
    FOREIGN,
    LAST_RECORD,
    PIECE,
    ZIP_ENTRY,
    Budget,
    UnreadError,
    decompressed,
    end_of_zstd,
    is_stream,
    window_of,
)
from secure_bloom.tracing.tabular import orc_start

#: Streams that begin inside a file of another kind.
_MOST_EMBEDDED: Final = 1_000
#: Blocks of zstd whose sizes are looked at: one may have 128 KiB.
_MOST_BLOCKS: Final = 200_000


class InnerFiles:
    """Finds files that begin inside another file."""

    def __init__(self, file: BinaryIO, budget: Budget, place: str) -> None:
        self._file, self._budget, self._place = file, budget, place
        self._left, self._steps = _MOST_EMBEDDED, iter(range(_MOST_BLOCKS))
        #: Where the last file with the same mark at its start and its end begins.
        self._starts = {"Parquet": 0, "Arrow": 0}
        self._end_of_zip = self._end_of_snappy = 0
        #: Where files begin that have a mark at their end, by kind; and the files that were found.
        self._begun: dict[str, list[int]] = {}
        self._spans: list[tuple[int, int]] = []

    def found(self, kind: str, start: int) -> Iterator[Stream | Span]:
        """Yield the files that may begin or end at a mark. Yield nothing for a chance match."""
        if kind in BEGINNINGS:
            # The last one is kept of many.
            begun = self._begun.setdefault(kind, [])
            begun[_MOST_EMBEDDED:] = [start]
            return
        # Programs and numbers have such bytes often.
        if kind == "Arrow stream" and not _begins_stream(self._file, start):
            return
        self._left -= 1
        if self._left < 0:
            raise UnreadError(f"more than {_MOST_EMBEDDED:,} packed streams inside a file")
        at = within(self._place, f"{kind} at byte {start}")
        if kind not in FOREIGN:
            yield from self._streams(kind, start, at)
            return
        for begin, end in self._windows(kind, start):
            self._spans.append((begin, end))
            yield Span(at, begin, end)

    def _streams(self, kind: str, start: int, at: str) -> Iterator[Stream]:
        """Yield the packed stream that begins at ``start``, if it is one."""
        # Each stream of skipped chunks would be read to the end of all that follow.
        if kind == "snappy" and start < self._end_of_snappy:
            return
        size = size_of(self._file)
        end = end_of_zstd(self._file, start, self._steps) if kind == "zstd" else size
        window = window_of(self._file, start, end)
        is_sure = is_stream(kind, window.read(HEAD))
        window.seek(0)
        pieces = decompressed(window, kind, self._budget)
        if is_sure:
            yield Stream(at, pieces)
        else:
            with suppress(UnreadError):
                if first := next(pieces, b""):
                    rest = _until_damage(pieces) if self._is_in_picture(start) else pieces
                    yield Stream(at, chain([first], rest))
        if kind == "snappy":
            self._end_of_snappy = start + window.tell()

    def are_cut_short(self, opened: Opened) -> bool:
        """Return whether files begin inside the file and do not end. They are listed."""
        is_any = False
        for kind, starts in self._begun.items():
            for start in starts:
                if not any(begin <= start < end for begin, end in self._spans):
                    error = UnreadError(f"{BEGINNINGS[kind]} that is cut short")
                    opened.missed(within(self._place, f"byte {start}"), error)
                    is_any = True
                    break
        return is_any

    def _is_in_picture(self, start: int) -> bool:
        """Return whether a chunk of PNG has the bytes at ``start``. Chunks split packed data."""
        self._file.seek(max(0, start - 4))
        return self._file.read(4) in (b"IDAT", b"fdAT")

    def _windows(self, kind: str, mark: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end offset of each file that may have the magic bytes at ``mark``."""
        size = size_of(self._file)
        if kind in self._starts:
            # The length of the footer precedes the mark at the end.
            end = mark + _END_MARKS[kind]
            if _ends_with_footer(self._file, self._starts[kind], mark):
                yield self._starts[kind], end
            self._starts[kind] = mark
        elif kind == "zip":
            if _ends_with_directory(self._file, self._end_of_zip, mark):
                yield self._end_of_zip, mark + LAST_RECORD
                self._end_of_zip = mark + LAST_RECORD
        elif kind == "ORC":
            yield from _orc_window(self._file, mark, self._budget)
        elif mark >= _BEFORE_MARK.get(kind, 0):
            yield mark - _BEFORE_MARK.get(kind, 0), size


#: The bytes of a mark at the end of a file, and those before a mark in its first header.
_END_MARKS: Final = {"Parquet": 4, "Arrow": 6}
_BEFORE_MARK: Final = {"tar": 257}
#: What a zip64 archive has for a size, and the bytes of its two records before the last one.
_NOT_HERE, _RECORDS_OF_64 = 0xFFFF_FFFF, 76
#: Places that are tried as the start of an ORC file, of which only the end is sure.
_MOST_STARTS: Final = 64


def _ends_with_footer(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a file that begins at ``start`` may have its footer before ``end``."""
    file.seek(max(0, end - 4))
    return 0 < int.from_bytes(file.read(4), "little") <= end - start - 8


def _ends_with_directory(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a zip archive that begins after ``start`` may have its directory at ``end``.

    ``end`` is where its last record begins (APPNOTE.TXT 4.3.16).
    """
    file.seek(end + 12)
    size, offset = (int.from_bytes(file.read(4), "little") for _ in range(2))
    if _NOT_HERE in (size, offset) and end - start >= _RECORDS_OF_64:
        # The record with the sizes precedes the one that says where it is (4.3.14, 4.3.15).
        end -= _RECORDS_OF_64
        file.seek(end)
        record = file.read(_RECORDS_OF_64)
        size, offset = (int.from_bytes(record[at : at + 8], "little") for at in (40, 48))
        if not record.startswith(b"PK\6\6") or record[56:60] != b"PK\6\7":
            raise UnreadError(
                "a zip64 archive between other bytes, and its directory was not found"
            )
    file.seek(max(start, end - size))
    return 0 < size <= end - start - offset and file.read(4) == ZIP_ENTRY


def _orc_window(file: BinaryIO, mark: int, budget: Budget) -> Iterator[tuple[int, int]]:
    """Yield the span of an ORC file that ends at a mark, if that is not the whole file."""
    starts: list[int] = []
    end, at = mark + 8, 0
    while at < mark and len(starts) < _MOST_STARTS:
        file.seek(at)
        piece = file.read(min(PIECE, mark - at))
        found = (match.start() + at for match in re.finditer(b"ORC", piece))
        starts += islice(found, _MOST_STARTS - len(starts))
        at += max(len(piece) - 2, 1)
    first = orc_start(file, list(dict.fromkeys(starts)), end, budget)
    if first is None:
        raise UnreadError("an ORC file after other bytes, and its start was not found")
    if first > 0 or end < size_of(file):
        yield first, end


def _begins_stream(file: BinaryIO, start: int) -> bool:
    """Return whether an Arrow stream with a schema begins at ``start``."""
    # Arrow closes the file.
    window = pa.PythonFile(window_of(file, start, size_of(file)), mode="r")
    if size_of_schema(file, start) > memory_budget():
        # Its reader refuses it, so that it is listed.
        return True
    with suppress(pa.ArrowException, OSError, ValueError):
        pa.ipc.read_schema(window)
        return True
    return False


def _until_damage(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what comes before the first damage. Raise UnreadError only for a spent budget."""
    try:
        yield from pieces
    except UnreadError as error:
        if "more than" in str(error):
            raise
