"""What a file contains: texts, columns, and other files; and the first bytes that reveal a format.

A function that opens a format yields a `Part` for what is searched, and a `Stream` or a `Span` for
what may be a file itself.  `tracing.sources` opens these in turn.
"""

from __future__ import annotations

import io
import string
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import BinaryIO, Final

import pyarrow as pa

from secure_bloom.tracing.arrow_columns import arrow_columns, end_of_streams
from secure_bloom.tracing.packed import STREAM_MARKS, UNPACKABLE, Budget, UnreadError
from secure_bloom.tracing.parquet_columns import Protected, parquet_columns
from secure_bloom.tracing.runs import is_file
from secure_bloom.tracing.tabular import (
    Columns,
    avro_columns,
    end_of_database,
    orc_columns,
    sqlite_columns,
)

#: Decoded bytes of a file: these, and this many times its own.
_LEAST_BUDGET, _TIMES = 256 << 20, 100
#: What must be in memory to be opened, because it lies in a container.
MOST_IN_MEMORY: Final = 512 << 20
#: Bytes at the start of a file by which its format is recognized.
HEAD: Final = 4096

#: The first bytes of a file that ends where it says -> its end. Other files may follow.
ENDS: Final[dict[bytes, Callable[[BinaryIO], int]]] = {
    b"\xff\xff\xff\xff": end_of_streams,
    b"SQLite format 3\0": end_of_database,
}
#: The first bytes of a file -> its columns.
FORMATS: Final[dict[bytes, Callable[[BinaryIO, Budget], Columns]]] = {
    b"PAR1": parquet_columns,
    b"PARE": parquet_columns,
    b"ARROW1": arrow_columns,
    b"\xff\xff\xff\xff": arrow_columns,
    b"ORC": orc_columns,
    b"Obj\x01": avro_columns,
    b"SQLite format 3\0": sqlite_columns,
}
#: The first bytes of a 7z archive.
SEVEN_ZIP: Final = b"7z\xbc\xaf\x27\x1c"
#: The first bytes of files that are opened, or that cannot be.
MARKS: Final = (*STREAM_MARKS, *UNPACKABLE, *FORMATS, b"PK\3\4", SEVEN_ZIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file: its place, and its content as ``pieces``, ``arrays``, or ``texts``.

    ``pieces`` are bytes, and ``arrays`` the values of one column. Each of ``texts`` is judged by
    itself: among any number of texts, a single text with a value is found.
    """

    place: str
    pieces: Iterator[bytes] | None = field(default=None, repr=False)
    arrays: Iterator[pa.Array] | None = field(default=None, repr=False)
    texts: Iterable[bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes at a place that are read once, forwards. They may be a file of any kind."""

    place: str
    pieces: Iterator[bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from ``start`` to ``end`` of a file, which may be a file of any kind.

    They were searched as they are stored. ``end`` None means the end of the file.
    """

    place: str
    start: int
    end: int | None = None


Content = Part | Stream | Span


@dataclass(slots=True)
class Opened:
    """The state of reading a file's parts. ``unread`` lists places and reasons.

    ``protected`` opens the file with keys, if it is a Parquet file that may be encrypted.
    """

    budget: Budget
    unread: list[tuple[str, str]] = field(default_factory=list)
    protected: Protected | None = None

    @classmethod
    def of(
        cls,
        size: int,
        protected: Protected | None = None,
        processes: Iterator[int] | None = None,
    ) -> Opened:
        """Return the state for a file of ``size`` bytes."""
        return cls(Budget(size, _LEAST_BUDGET, _TIMES, processes), protected=protected)

    def missed(self, place: str, error: UnreadError) -> None:
        """Record what was not read."""
        self.unread.append((place, str(error)))


def is_marked(head: bytes, least: int = 2) -> bool:
    """Return whether bytes begin with the mark of a format that has at least ``least`` bytes.

    A shorter mark counts with the fields after it, which bytes of chance do not have.
    """
    return head.startswith(_marks_of(least)) or is_file(head)


@cache
def _marks_of(least: int) -> tuple[bytes, ...]:
    """Return the marks that have at least ``least`` bytes, for millions of values."""
    return tuple(mark for mark in MARKS if len(mark) >= least)


def is_text(head: bytes) -> bool:
    """Return whether a file begins with text. A text about Parquet may begin with PAR1."""
    odd = head.translate(None, string.printable.encode())
    try:
        odd.decode()
    except UnicodeDecodeError as error:
        # The end of the head may cut a character.
        odd = odd[: error.start] if error.start >= len(odd) - 3 else b"\0"
    return not any(byte < 0x20 for byte in odd)


def is_tar(head: bytes) -> bool:
    """Return whether a file begins with the header of a tar archive's member."""
    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def within(place: str, part: str) -> str:
    """Return the name of a part of what is at a place."""
    return f"{place}, {part}" if place else part


def size_of(file: BinaryIO) -> int:
    """Return the size of a file in bytes. Moves its position to the end."""
    return file.seek(0, io.SEEK_END)
