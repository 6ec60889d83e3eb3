"""The texts of a file: its bytes as they are stored, and the content of the formats inside it.

The stored bytes of every file are searched. This finds names in archives, comments, gaps, stubs and
tails.  Then the file is opened according to its first bytes, never its name.  Containers inside
containers are opened too, up to 8 levels deep.  What cannot be opened is listed with the reason.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import BinaryIO, Final, cast

import pyarrow as pa

from secure_bloom.tracing.containers import (
    pdf_content,
    seven_zip_content,
    tar_content,
    zip_content,
)
from secure_bloom.tracing.content import (
    ENDS,
    FORMATS,
    HEAD,
    MOST_IN_MEMORY,
    SEVEN_ZIP,
    Content,
    Opened,
    Part,
    Span,
    Stream,
    is_tar,
    is_text,
    size_of,
    within,
)
from secure_bloom.tracing.inner_files import InnerFiles
from secure_bloom.tracing.packed import (
    FOREIGN,
    PIECE,
    SKIPPED,
    UNPACKABLE,
    Budget,
    Joined,
    UnreadError,
    decompressed,
    embedded,
    kind_of,
    window_of,
)
from secure_bloom.tracing.parquet_columns import parquet_columns
from secure_bloom.tracing.unmarked import Evenness, is_media, without_mark

#: How many containers may be in one another.
DEEPEST: Final = 8
TOO_DEEP: Final = f"a container inside more than {DEEPEST} others"
#: A text of fewer bytes in a container is kept whole, and searched for files after its start.
_SHORT: Final = 8 << 20
#: Bytes that a codec unpacks before it is believed that it packed the file.
_MOST_TRIED: Final = 16 << 20


def parts_of(file: BinaryIO, opened: Opened, place: str = "", depth: int = 0) -> Iterator[Part]:
    """Yield all readable parts of a file. The first part is the file's stored bytes."""
    head = file.read(HEAD)
    file.seek(0)
    yield Part(place=place, pieces=iter(lambda: file.read(PIECE), b""))
    try:
        openers = list(_openers(file, head, depth + 1))
        if openers and depth >= DEEPEST:
            raise UnreadError(TOO_DEEP)
    except UnreadError as error:
        opened.missed(place, error)
        return
    if not openers and depth < DEEPEST:
        openers = [partial(_inside, depth=depth + 1)]
    is_read, missed = False, len(opened.unread)
    for opener in openers:
        try:
            file.seek(0)
            contents = opener(file, opened, place)
            if is_read and opener is zip_content:
                # A member that ends the archive: all that surrounds it was read as other members.
                contents = (it for it in contents if not isinstance(it, Span))
            yield from _searched(contents, file, opened, depth + 1)
            is_read = opener in _OF_MEMBERS and len(opened.unread) == missed
        except UnreadError as error:
            opened.missed(place, error)
        # Any error of a library: its text may hold values.
        except Exception as error:
            opened.missed(place, UnreadError(f"an unforeseen {type(error).__name__}"))


def _searched(
    contents: Iterable[Content], file: BinaryIO, opened: Opened, depth: int
) -> Iterator[Part]:
    """Yield the parts of the contents of a file. Streams and spans are opened as files."""
    for content in contents:
        if isinstance(content, Part):
            yield content
        elif isinstance(content, Stream):
            yield from _of_stream(content, opened, depth)
        else:
            end = size_of(file) if content.end is None else content.end
            if content.start < end:
                at = within(content.place, f"bytes from {content.start}")
                window = window_of(file, content.start, end)
                # The first part, its stored bytes, was searched as a part of the file.
                yield from islice(parts_of(window, opened, at, depth), 1, None)


#: These open all members of an archive, and what follows the archive.
_OF_MEMBERS: Final = (tar_content, seven_zip_content)
_Opener = Callable[[BinaryIO, Opened, str], Iterator[Content]]


def _openers(file: BinaryIO, head: bytes, depth: int) -> Iterator[_Opener]:
    """Yield the functions that open a file, chosen by its first and last bytes. Two may fit."""
    yield from _by_head(head)
    file.seek(0)
    if zipfile.is_zipfile(file):
        yield zip_content
    elif head.startswith(b"PK\3\4"):
        raise UnreadError("a zip archive that is cut short")
    # Readers look at the last bytes of a Parquet file alone.
    end = size_of(file)
    file.seek(max(0, end - 4))
    is_parquet = end > 12 and file.read(4) in (b"PAR1", b"PARE") and not is_text(head)
    if is_parquet and not head.startswith((b"PAR1", b"PARE")):
        yield partial(_columns, b"PAR1")
        # Other bytes may precede the Parquet file, as in a log file of Hudi.
        yield partial(_inside, depth=depth)


def _by_head(head: bytes) -> Iterator[_Opener]:
    for magic, what in UNPACKABLE.items():
        if head.startswith(magic):
            raise UnreadError(f"{what}, which is not opened")
    kind = kind_of(head)
    if kind is not None:
        yield partial(_unpacked, kind)
    for magic in FORMATS:
        if head.startswith(magic) and not is_text(head) and not is_media(head):
            yield partial(_columns, magic)
    if head.startswith(SEVEN_ZIP):
        yield seven_zip_content
    if head.startswith(b"%PDF"):
        yield pdf_content
    if is_tar(head):
        yield tar_content


def _columns(magic: bytes, file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    read = FORMATS[magic]
    # A file in another one has no files beside it.
    if read is parquet_columns and not place:
        read = partial(parquet_columns, protected=opened.protected)
    for n, column in enumerate(read(file, opened.budget), 1):
        at = within(place, f"column {n}")
        yield Part(place=at, arrays=_guarded(column.arrays, opened, at))
    # A header may claim that the file has no bytes.
    if magic in ENDS and (end := ENDS[magic](file)) > 0:
        yield Span(place, end)


def _guarded(arrays: Iterator[pa.Array], opened: Opened, place: str) -> Iterator[pa.Array]:
    try:
        yield from arrays
    except UnreadError as error:
        opened.missed(place, error)


def _unpacked(kind: str, file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    """Yield the content of a packed file, and what lies after it or in frames that are skipped."""
    left: list[int] = []
    yield Stream(within(place, kind), decompressed(file, kind, opened.budget, left.append))
    if any(left):
        if file.seekable():
            yield Span(place, file.tell() - left[0])
            return
        error = UnreadError("bytes after the end of packed data inside other packed data")
        opened.missed(place, error)
    elif kind in SKIPPED and file.seekable():
        file.seek(0)
        for start, size in SKIPPED[kind](file):
            yield Span(place, start, start + size)


def _of_stream(stream: Stream, opened: Opened, depth: int) -> Iterator[Part]:
    """Yield the parts of a stream that is read only forwards, and opened if it is a container."""
    place, pieces = stream.place, stream.pieces
    try:
        opened.budget.check()
    except UnreadError as error:
        # Else each member of an archive would be unpacked up to its first piece, and searched.
        opened.missed(place, error)
        return
    held: list[bytes] = []
    size, is_whole = 0, True
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            head = b"".join(held[:8])[:HEAD]
            if size >= (_SHORT if kind_of(head) is None else HEAD) and not _wants_all(head):
                is_whole = False
                break
            if size > MOST_IN_MEMORY:
                raise UnreadError(
                    f"a container of more than {MOST_IN_MEMORY:,} bytes inside another"
                )
    except UnreadError as error:
        # What came before the damage is searched.
        opened.missed(place, error)
    start = b"".join(held)
    if is_whole:
        yield from parts_of(io.BytesIO(start), opened, place, depth)
        return
    kind = kind_of(start[:HEAD])
    if kind is not None:
        joined = cast("BinaryIO", io.BufferedReader(Joined(chain([start], pieces))))
        yield from _searched(_unpacked(kind, joined, opened, place), joined, opened, depth + 1)
        return
    yield Part(place=place, pieces=_forwards(chain([start], pieces), opened, place))


def _wants_all(head: bytes) -> bool:
    """Return whether a stream must be read into memory, because its parts may be anywhere in it."""
    if kind_of(head) is not None:
        return False
    wanted = (*FORMATS, *UNPACKABLE, SEVEN_ZIP, b"%PDF", b"PK")
    # A plain text has no zeros.
    return head.startswith(wanted) or is_tar(head) or b"\0" in head


def _forwards(pieces: Iterator[bytes], opened: Opened, place: str) -> Iterator[bytes]:
    """Yield a text that is too long for memory. What is packed in it is not opened."""
    evenness, is_marked = Evenness(b""), False
    try:
        for piece in pieces:
            yield piece
            evenness.take(piece)
            is_marked = is_marked or any(
                kind not in FOREIGN or kind == "zip" for _, kind in embedded(piece, 0)
            )
        if is_marked or evenness.is_packed:
            raise UnreadError("packed data inside a decoded text inside packed data")
    except UnreadError as error:
        opened.missed(place, error)


def _inside(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the packed parts inside a file that is no container, or after a container's start.

    If nothing in a file can be opened, and the file looks packed, the codecs that leave no mark are
    tried.  Raises UnreadError if none of them can unpack the file.
    """
    offset, overlap, inner = 0, b"", InnerFiles(file, opened.budget, place)
    head = file.read(HEAD)
    evenness, is_found = Evenness(head), False
    file.seek(0)
    while piece := file.read(PIECE):
        data = overlap + piece
        for at, kind in embedded(data, len(overlap)):
            # At the start of the file it was opened; after that it may be a further member.
            if offset - len(overlap) + at == 0:
                continue
            found = inner.found(kind, offset - len(overlap) + at)
            for part in _searched(found, file, opened, depth):
                is_found = True
                yield part
        if not is_found:
            evenness.take(piece)
        offset += len(piece)
        overlap = data[-16:]
        file.seek(offset)
    if inner.are_cut_short(opened) or is_found:
        return
    kinds = without_mark(head, offset, is_even=evenness.is_packed)
    for kind in () if is_text(head) else kinds:
        if _unpacks(file, kind):
            file.seek(0)
            yield from _searched(_unpacked(kind, file, opened, place), file, opened, depth)
            return
    if evenness.is_packed:
        raise UnreadError("bytes that look packed or encrypted, in an unknown format")


def _unpacks(file: BinaryIO, kind: str) -> bool:
    """Return whether a codec unpacks a file to its end, or to more than is kept in memory."""
    file.seek(0)
    left = _MOST_TRIED
    with suppress(UnreadError):
        for piece in decompressed(file, kind, Budget(0, _MOST_TRIED + PIECE, 0)):
            left -= len(piece)
            if left < 0:
                return True
        return left < _MOST_TRIED
    return False
