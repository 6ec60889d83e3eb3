"""The texts of a file: its bytes as they are stored, and the content of the formats inside it.

The stored bytes of every file are searched. This finds names in archives, comments, gaps, stubs and
tails.  Then the file is opened according to its first bytes, never its name.  Containers inside
containers are opened too, up to 8 levels deep.  What cannot be opened is listed with the reason.
"""

from __future__ import annotations

import io
import re
import string
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import BinaryIO, Final, cast

import pyarrow as pa

from secure_bloom.running.memory_budget import memory_budget
from secure_bloom.tracing.apart import SectionWriter, sections_of
from secure_bloom.tracing.arrow_columns import arrow_columns, end_of_streams, size_of_schema
from secure_bloom.tracing.packed import (
    FOREIGN,
    PIECE,
    SKIPPED,
    STREAM_MARKS,
    UNPACKABLE,
    Budget,
    Joined,
    UnreadError,
    check_at_once,
    decompressed,
    embedded,
    extra,
    kind_of,
    window_of,
)
from secure_bloom.tracing.parquet_columns import Protected, parquet_columns
from secure_bloom.tracing.tabular import (
    Columns,
    avro_columns,
    end_of_database,
    orc_columns,
    orc_start,
    sqlite_columns,
)
from secure_bloom.tracing.unmarked import Evenness, without_mark

#: How many containers may be in one another.
DEEPEST: Final = 8
#: Decoded bytes of a file: these, and this many times its own.
_LEAST_BUDGET, _TIMES = 256 << 20, 100
#: What must be in memory to be opened, because it lies in a container.
_MOST_IN_MEMORY: Final = 512 << 20
#: Streams that begin inside a file of another kind.
_MOST_EMBEDDED: Final = 1_000
_HEAD: Final = 4096
#: The bit of a member's flags that says that it is encrypted (APPNOTE.TXT 4.4.4).
_WITH_PASSWORD: Final = 1
#: The bit that says that a description follows the bytes.
_IS_DESCRIBED: Final = 8


#: The first bytes of a file that ends where it says -> its end. Other files may follow.
_ENDS: Final[dict[bytes, Callable[[BinaryIO], int]]] = {
    b"\xff\xff\xff\xff": end_of_streams,
    b"SQLite format 3\0": end_of_database,
}
#: The first bytes of a file -> its columns.
_FORMATS: Final[dict[bytes, Callable[[BinaryIO, Budget], Columns]]] = {
    b"PAR1": parquet_columns,
    b"PARE": parquet_columns,
    b"ARROW1": arrow_columns,
    b"\xff\xff\xff\xff": arrow_columns,
    b"ORC": orc_columns,
    b"Obj\x01": avro_columns,
    b"SQLite format 3\0": sqlite_columns,
}


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


@dataclass(slots=True)
class Opened:
    """The state of reading a file's parts. ``unread`` lists places and reasons.

    ``protected`` opens the file with keys, if it is a Parquet file that may be encrypted.
    """

    budget: Budget
    unread: list[tuple[str, str]] = field(default_factory=list)
    protected: Protected | None = None

    @classmethod
    def of(cls, size: int, protected: Protected | None = None) -> Opened:
        """Return the state for a file of ``size`` bytes."""
        return cls(Budget(size, _LEAST_BUDGET, _TIMES), protected=protected)

    def missed(self, place: str, error: UnreadError) -> None:
        """Record what was not read."""
        self.unread.append((place, str(error)))


def parts_of(file: BinaryIO, opened: Opened, place: str = "", depth: int = 0) -> Iterator[Part]:
    """Yield all readable parts of a file. The first part is the file's stored bytes."""
    head = file.read(_HEAD)
    file.seek(0)
    yield Part(place=place, pieces=iter(lambda: file.read(PIECE), b""))
    try:
        openers = list(_openers(file, head))
        if openers and depth >= DEEPEST:
            raise UnreadError(f"a container inside more than {DEEPEST} others")
    except UnreadError as error:
        opened.missed(place, error)
        return
    for opener in openers or [_inside] * (depth < DEEPEST):
        try:
            file.seek(0)
            yield from opener(file, opened, place, depth + 1)
        except UnreadError as error:
            opened.missed(place, error)
        # Any error of a library: its text may hold values.
        except Exception as error:
            opened.missed(place, UnreadError(f"an unforeseen {type(error).__name__}"))


#: The first bytes of files that are opened, or that cannot be.
MARKS: Final = (*STREAM_MARKS, *UNPACKABLE, *_FORMATS, b"PK\3\4", b"7z\xbc\xaf\x27\x1c")


def is_marked(head: bytes, least: int = 2) -> bool:
    """Return whether bytes begin with the mark of a format that has at least ``least`` bytes."""
    return any(len(mark) >= least and head.startswith(mark) for mark in MARKS)


_Opener = Callable[[BinaryIO, Opened, str, int], Iterator[Part]]


def _openers(file: BinaryIO, head: bytes) -> Iterator[_Opener]:
    """Yield the functions that open a file, chosen by its first and last bytes. Two may fit."""
    yield from _by_head(head)
    file.seek(0)
    if zipfile.is_zipfile(file):
        yield _zip
    elif head.startswith(b"PK\3\4"):
        raise UnreadError("a zip archive that is cut short")
    # Readers look at the last bytes of a Parquet file alone.
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 4))
    is_parquet = end > 12 and file.read(4) in (b"PAR1", b"PARE") and not _is_text(head)
    if is_parquet and not head.startswith((b"PAR1", b"PARE")):
        yield partial(_columns, b"PAR1")
        # Other bytes may precede the Parquet file, as in a log file of Hudi.
        yield _inside


def _by_head(head: bytes) -> Iterator[_Opener]:
    for magic, what in UNPACKABLE.items():
        if head.startswith(magic):
            raise UnreadError(f"{what}, which is not opened")
    kind = kind_of(head)
    if kind is not None:
        yield partial(_unpacked, kind)
    for magic in _FORMATS:
        if head.startswith(magic) and not _is_text(head):
            yield partial(_columns, magic)
    if head.startswith(b"7z\xbc\xaf\x27\x1c"):
        yield _seven_zip
    if head.startswith(b"%PDF"):
        yield _pdf
    if _is_tar(head):
        yield _tar


def _is_text(head: bytes) -> bool:
    """Return whether a file begins with text. A text about Parquet may begin with PAR1."""
    odd = head.translate(None, string.printable.encode())
    try:
        odd.decode()
    except UnicodeDecodeError as error:
        # The end of the head may cut a character.
        odd = odd[: error.start] if error.start >= len(odd) - 3 else b"\0"
    return not any(byte < 0x20 for byte in odd)


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head[:512], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def _columns(
    magic: bytes, file: BinaryIO, opened: Opened, place: str, depth: int
) -> Iterator[Part]:
    read = _FORMATS[magic]
    # A file in another one has no files beside it.
    if read is parquet_columns and not place:
        read = partial(parquet_columns, protected=opened.protected)
    for n, column in enumerate(read(file, opened.budget), 1):
        at = _at(place, f"column {n}")
        yield Part(place=at, arrays=_guarded(column.arrays, opened, at))
    # A header may claim that the file has no bytes.
    if magic in _ENDS and (end := _ENDS[magic](file)) > 0:
        yield from _rest(file, end, opened, place, depth)


def _guarded(arrays: Iterator[pa.Array], opened: Opened, place: str) -> Iterator[pa.Array]:
    try:
        yield from arrays
    except UnreadError as error:
        opened.missed(place, error)


def _at(place: str, part: str) -> str:
    return f"{place}, {part}" if place else part


def _unpacked(kind: str, file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    left: list[int] = []
    pieces = decompressed(file, kind, opened.budget, left.append)
    yield from _nested(pieces, opened, _at(place, kind), depth)
    if not any(left):
        yield from _skippable(kind, file, opened, place, depth)
    elif file.seekable():
        yield from _rest(file, file.tell() - left[0], opened, place, depth)
    else:
        opened.missed(
            place, UnreadError("bytes after the end of packed data inside other packed data")
        )


def _rest(
    file: BinaryIO, start: int, opened: Opened, place: str, depth: int, end: int | None = None
) -> Iterator[Part]:
    """Yield the parts that can be opened inside a part of a file.

    The stored bytes of the part were searched before.
    """
    end = _size(file) if end is None else end
    if start >= end:
        return
    window = window_of(file, start, end)
    at = _at(place, f"bytes from {start}")
    yield from islice(parts_of(window, opened, at, depth), 1, None)


def _skippable(kind: str, file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the packed parts inside frames and chunks that decompressors skip."""
    if kind not in SKIPPED or not file.seekable():
        return
    file.seek(0)
    for start, size in SKIPPED[kind](file):
        yield from _rest(file, start, opened, place, depth, start + size)


def _nested(pieces: Iterator[bytes], opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the parts of a stream that is read only forwards, and opened if it is a container."""
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
            if size >= _HEAD and not _wants_all(b"".join(held[:8])[:_HEAD]):
                is_whole = False
                break
            if size > _MOST_IN_MEMORY:
                raise UnreadError(
                    f"a container of more than {_MOST_IN_MEMORY:,} bytes inside another"
                )
    except UnreadError as error:
        # What came before the damage is searched.
        opened.missed(place, error)
    start = b"".join(held)
    if is_whole:
        yield from parts_of(io.BytesIO(start), opened, place, depth)
        return
    kind = kind_of(start[:_HEAD])
    if kind is not None:
        joined = cast("BinaryIO", io.BufferedReader(Joined(_chained(start, pieces))))
        yield from _unpacked(kind, joined, opened, place, depth + 1)
        return
    yield Part(place=place, pieces=_forwards(_chained(start, pieces), opened, place))


def _wants_all(head: bytes) -> bool:
    """Return whether a stream must be read into memory, because its parts may be anywhere in it."""
    if kind_of(head) is not None:
        return False
    wanted = (*_FORMATS, *UNPACKABLE, b"7z\xbc\xaf\x27\x1c", b"%PDF", b"PK")
    return head.startswith(wanted) or _is_tar(head) or not _is_plain(head)


def _is_plain(head: bytes) -> bool:
    return head.count(0) == 0


def _chained(start: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield start
    yield from pieces


def _forwards(pieces: Iterator[bytes], opened: Opened, place: str) -> Iterator[bytes]:
    """Yield a text that is too long for memory. What is packed in it is not opened."""
    evenness, is_marked = Evenness(b""), False
    try:
        for piece in pieces:
            yield piece
            evenness.take(piece)
            is_marked = is_marked or any(kind not in FOREIGN for _, kind in embedded(piece, 0))
        if is_marked or evenness.is_packed:
            raise UnreadError("packed data inside a decoded text inside packed data")
    except UnreadError as error:
        opened.missed(place, error)


def _zip(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    try:
        end = _check_directory(file)
        archive = zipfile.ZipFile(file)
        members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnreadError("a zip archive that is damaged") from error
    yield _names([member.filename for member in members], place)
    # Many entries of a directory may be of the same bytes.
    of_bytes = {
        (it.header_offset, it.compress_size, it.compress_type, it.flag_bits): (n, it)
        for n, it in enumerate(members, 1)
    }
    for n, member in of_bytes.values():
        at = _at(place, f"member {n}")
        if member.flag_bits & _WITH_PASSWORD:
            opened.missed(at, UnreadError("a member with a password"))
        elif not member.is_dir():
            yield from _nested(_zip_pieces(archive, member, opened), opened, at, depth)
    for start, stop in _gaps(file, members, archive.start_dir):
        yield from _rest(file, start, opened, place, depth, stop)
    yield from _rest(file, end, opened, place, depth)


#: A local header, and the description that may follow a member's bytes (APPNOTE.TXT 4.3.7, 4.3.9).
_LOCAL, _DESCRIPTION = 30, 24


def _gaps(
    file: BinaryIO, members: list[zipfile.ZipInfo], directory: int
) -> Iterator[tuple[int, int]]:
    """Yield the spans before a zip archive's directory that belong to no member.

    These spans may hold other archives.
    """
    end = 0
    for member in sorted(members, key=lambda it: it.header_offset):
        if member.header_offset < 0:
            raise UnreadError("a zip archive that is damaged")
        if member.header_offset > end:
            yield end, member.header_offset
        file.seek(member.header_offset)
        local = file.read(_LOCAL)
        named = sum(int.from_bytes(local[at : at + 2], "little") for at in (26, 28))
        described = _DESCRIPTION if member.flag_bits & _IS_DESCRIBED else 0
        taken = _LOCAL + named + member.compress_size + described
        end = max(end, member.header_offset + taken)
    if end < directory:
        yield end, directory


#: What an entry of a zip archive's directory takes in memory, and a byte of it.
_ENTRY_COST, _ENTRY_BYTE = 1_200, 4
_ENTRY: Final = b"PK\1\2"
#: Bytes of the last record without its comment (APPNOTE.TXT 4.3.16).
_LAST_RECORD: Final = 22


def _check_directory(file: BinaryIO) -> int:
    """Return the offset after the archive's last record. A comment and other bytes may follow.

    Raises UnreadError for an archive with more members than fit into memory, because zipfile
    creates an object for each directory entry at once.
    """
    found = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not found:
        return _size(file)
    size, end = found[zipfile._ECD_SIZE], found[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    check_at_once(2 * size, "the directory of a zip archive")
    # In large archives another record lies between.
    file.seek(max(0, end - size - _HEAD))
    entries = file.read(size + _HEAD).count(_ENTRY)
    check_at_once(entries * _ENTRY_COST + _ENTRY_BYTE * size, "the directory of a zip archive")
    file.seek(0)
    return int(end) + _LAST_RECORD


def _zip_pieces(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, opened: Opened
) -> Iterator[bytes]:
    try:
        with archive.open(member) as content:
            while piece := content.read(PIECE):
                opened.budget.take(len(piece))
                yield piece
    except UnreadError:
        raise
    except Exception as error:
        raise UnreadError("a member that is damaged, or packed in an unknown way") from error


def _names(names: list[str], place: str) -> Part:
    content = "\n".join(names).encode("utf-8", "replace")
    return Part(place=_at(place, "names of members"), pieces=iter([content]))


def _tar(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for n, member in enumerate(iter(archive.next, None), 1):
                # Else all members that were passed stay in memory.
                archive.members.clear()  # type: ignore[attr-defined]
                yield _names([member.name, member.linkname], _at(place, f"member {n}"))
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    pieces = _tar_pieces(content, opened)
                    yield from _nested(pieces, opened, _at(place, f"member {n}"), depth)
            end = archive.offset
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        raise UnreadError("a tar archive that is damaged or cut short") from error
    file.seek(end)
    while piece := file.read(PIECE):
        end += len(piece) - len(piece.lstrip(b"\0"))
        if piece.strip(b"\0"):
            # Another archive may follow the zeros at the end of one.
            yield from _rest(file, end, opened, place, depth)
            return


def _tar_pieces(content: object, opened: Opened) -> Iterator[bytes]:
    file = cast("BinaryIO", content)
    try:
        while piece := file.read(PIECE):
            # A sparse member claims any size.
            opened.budget.take(len(piece))
            yield piece
    except (tarfile.TarError, OSError, EOFError) as error:
        raise UnreadError("a member that is damaged or cut short") from error


def _seven_zip(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the members, which are decoded in a process of limited memory.

    The archive's own header says how much memory its decoding takes, and that header is packed too.
    """
    # Without the library no process is started.
    extra("py7zr")
    for n, section in enumerate(sections_of(_members_of_7z, file, "a 7z archive")):
        if not n:
            yield Part(place=_at(place, "names of members"), pieces=section.pieces)
            continue
        pieces = _counted(section.pieces, opened.budget)
        yield from _nested(pieces, opened, _at(place, f"member {n}"), depth)
    file.seek(0)
    # The header comes last: its offset after these 32 bytes, and its size (7zFormat.txt).
    _, offset, size, _ = struct.unpack("<12sQQ4s", file.read(32))
    yield from _rest(file, 32 + offset + size, opened, place, depth)


def _counted(pieces: Iterator[bytes], budget: Budget) -> Iterator[bytes]:
    for piece in pieces:
        budget.take(len(piece))
        yield piece


def _members_of_7z(file: BinaryIO, emit: SectionWriter) -> None:
    py7zr = extra("py7zr")
    try:
        archive = py7zr.SevenZipFile(file)
        if archive.needs_password():
            raise UnreadError("a 7z archive with a password")
        emit.section("names")
        emit.piece("\n".join(archive.namelist()).encode("utf-8", "replace"))
        archive.extractall(factory=_Members(emit))  # noqa: S202, into messages
    except UnreadError:
        raise
    except Exception:
        raise UnreadError("a 7z archive that cannot be read") from None


class _Members:
    """Gives py7zr a file to write to for each member. Members are written one after the other."""

    def __init__(self, emit: SectionWriter) -> None:
        self._emit = emit

    def create(self, _: str) -> _Member:
        return _Member(self._emit)


class _Member:
    """A member of a 7z archive, which py7zr writes. py7zr reads back only targets of links."""

    def __init__(self, emit: SectionWriter) -> None:
        self._emit, self._size = emit, 0

    def write(self, content: bytes) -> int:
        if not self._size:
            self._emit.section("")
        for start in range(0, len(content), PIECE):
            self._emit.piece(bytes(content[start : start + PIECE]))
        self._size += len(content)
        return len(content)

    def read(self, _: int | None = None) -> bytes:
        return b""

    def seek(self, _: int, __: int = 0) -> int:
        return 0

    def flush(self) -> None:
        return

    def close(self) -> None:
        return

    def size(self) -> int:
        return self._size


_STREAM: Final = re.compile(rb"stream\r?\n")
_END_OF_PDF: Final = b"%%EOF"


def _pdf(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the zlib-packed streams of a PDF. Texts that kerning splits are also yielded joined.

    Streams that are files, and files after the PDF's end, are opened.
    """
    content = file.read(_MOST_IN_MEMORY)
    if file.read(1):
        opened.missed(place, UnreadError(f"a PDF of more than {_MOST_IN_MEMORY:,} bytes"))
    if b"/Encrypt" in content[-4096:]:
        raise UnreadError("a PDF with a password")
    for n, match in enumerate(_STREAM.finditer(content), 1):
        at = _at(place, f"stream {n}")
        plain, is_whole = _stream_of_pdf(memoryview(content)[match.end() :], opened.budget)
        if not is_whole:
            opened.missed(at, UnreadError(f"a stream of more than {_LONGEST_STREAM:,} bytes"))
        if is_marked(plain, least=3):
            yield from _nested(iter([plain]), opened, at, depth)
        elif plain:
            # [(al) 20 (ice)] TJ: numbers move letters, and the text goes on.
            yield Part(place=at, pieces=iter([plain, b"\n", _KERNING.sub(b"", plain)]))
        elif is_marked(content[match.end() : match.end() + _HEAD], least=3):
            end = content.find(b"endstream", match.end())
            yield from _rest(file, match.end(), opened, at, depth, end if end >= 0 else None)
    end = content.rfind(_END_OF_PDF)
    if end >= 0:
        yield from _rest(file, end + len(_END_OF_PDF), opened, place, depth)


_LONGEST_STREAM: Final = 16 * PIECE
#: Without a way back: a text may have millions of spaces or digits here.
_KERNING: Final = re.compile(rb"\)\s*+(?:-?[\d.]++\s*+)?+\(")


def _stream_of_pdf(packed: memoryview, budget: Budget) -> tuple[bytes, bool]:
    """Return the content of a stream up to its end or its damage, and whether it is complete.

    zlib gets the packed bytes in growing pieces, because it copies the bytes after the stream's
    end.
    """
    unpacker, plain, step = zlib.decompressobj(), b"", 512
    with suppress(zlib.error):
        while packed and not unpacker.eof:
            piece = unpacker.decompress(packed[:step], _LONGEST_STREAM + 1 - len(plain))
            budget.take(len(piece))
            plain += piece
            if len(plain) > _LONGEST_STREAM:
                return plain, False
            packed, step = packed[step:], min(2 * step, 1 << 16)
    return plain, True


def _inside(file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the packed parts inside a file that is no container, or after a container's start.

    If nothing in a file can be opened, and the file looks packed, the codecs that leave no mark are
    tried.  Raises UnreadError if none of them can unpack the file.
    """
    offset, overlap, inner = 0, b"", _InnerFiles(file, opened, place, depth)
    head = file.read(_HEAD)
    evenness, is_found = Evenness(head), False
    file.seek(0)
    while piece := file.read(PIECE):
        data = overlap + piece
        for at, kind in embedded(data, len(overlap)):
            # At the start of the file it was opened; after that it may be a further member.
            if offset - len(overlap) + at == 0:
                continue
            for part in inner.parts(kind, offset - len(overlap) + at):
                is_found = True
                yield part
        if not is_found:
            evenness.take(piece)
        offset += len(piece)
        overlap = data[-16:]
        file.seek(offset)
    if is_found:
        return
    kinds = without_mark(head, offset, is_even=evenness.is_packed)
    for kind in () if _is_text(head) else kinds:
        if _unpacks(file, kind):
            file.seek(0)
            yield from _unpacked(kind, file, opened, place, depth)
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


#: Bytes that a codec unpacks before it is believed that it packed the file.
_MOST_TRIED: Final = 16 << 20


class _InnerFiles:
    """Opens files that begin inside another file."""

    def __init__(self, file: BinaryIO, opened: Opened, place: str, depth: int) -> None:
        self._file, self._opened, self._place, self._depth = file, opened, place, depth
        self._left = _MOST_EMBEDDED
        #: Where the last file with the same mark at its start and its end begins.
        self._starts = {"Parquet": 0, "Arrow": 0}

    def parts(self, kind: str, start: int) -> Iterator[Part]:
        """Yield the parts of a file that begins or ends at a mark."""
        # Programs and numbers have such bytes often.
        if kind == "Arrow stream" and not _begins_stream(self._file, start):
            return
        self._left -= 1
        if self._left < 0:
            raise UnreadError(f"more than {_MOST_EMBEDDED:,} packed streams inside a file")
        at = _at(self._place, f"{kind} at byte {start}")
        if kind not in FOREIGN:
            self._file.seek(start)
            yield from _tried(kind, self._file, self._opened, at, self._depth)
            return
        for first, end in self._windows(kind, start):
            yield from _rest(self._file, first, self._opened, at, self._depth, end)

    def _windows(self, kind: str, mark: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end offset of each file that may have the magic bytes at ``mark``."""
        size = _size(self._file)
        if kind in self._starts:
            # The length of the footer precedes the mark at the end.
            end = mark + _END_MARKS[kind]
            if _ends_with_footer(self._file, self._starts[kind], mark):
                yield self._starts[kind], end
            self._starts[kind] = mark
        elif kind == "ORC":
            yield from _orc_window(self._file, mark)
        elif mark >= _BEFORE_MARK.get(kind, 0):
            yield mark - _BEFORE_MARK.get(kind, 0), size


#: The bytes of a mark at the end of a file, and those before a mark in its first header.
_END_MARKS: Final = {"Parquet": 4, "Arrow": 6}
_BEFORE_MARK: Final = {"tar": 257}
#: Places that are tried as the start of an ORC file, of which only the end is sure.
_MOST_STARTS: Final = 64


def _size(file: BinaryIO) -> int:
    return file.seek(0, io.SEEK_END)


def _ends_with_footer(file: BinaryIO, start: int, end: int) -> bool:
    """Return whether a file that begins at ``start`` may have its footer before ``end``."""
    file.seek(max(0, end - 4))
    return 0 < int.from_bytes(file.read(4), "little") <= end - start - 8


def _orc_window(file: BinaryIO, mark: int) -> Iterator[tuple[int, int]]:
    """Yield the span of an ORC file that ends at a mark, if that is not the whole file."""
    starts: list[int] = []
    end, at = mark + 8, 0
    while at < mark and len(starts) < _MOST_STARTS:
        file.seek(at)
        piece = file.read(min(PIECE, mark - at))
        found = (match.start() + at for match in re.finditer(b"ORC", piece))
        starts += islice(found, _MOST_STARTS - len(starts))
        at += max(len(piece) - 2, 1)
    first = orc_start(file, list(dict.fromkeys(starts)), end)
    if first is None:
        raise UnreadError("an ORC file after other bytes, and its start was not found")
    if first > 0 or end < _size(file):
        yield first, end


def _begins_stream(file: BinaryIO, start: int) -> bool:
    """Return whether an Arrow stream with a schema begins at ``start``."""
    # Arrow closes the file.
    window = pa.PythonFile(window_of(file, start, _size(file)), mode="r")
    if size_of_schema(file, start) > memory_budget():
        # Its reader refuses it, so that it is listed.
        return True
    with suppress(pa.ArrowException, OSError, ValueError):
        pa.ipc.read_schema(window)
        return True
    return False


def _tried(kind: str, file: BinaryIO, opened: Opened, place: str, depth: int) -> Iterator[Part]:
    """Yield the parts of packed data that may begin in a file. Yield nothing for a chance match."""
    pieces = decompressed(file, kind, opened.budget)
    try:
        first = next(pieces, b"")
    except UnreadError:
        return
    if first:
        yield from _nested(_chained(first, _until_damage(pieces)), opened, place, depth)


def _until_damage(pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except UnreadError as error:
        if "more than" in str(error):
            raise
