"""Open containers: zip, tar and 7z archives, and PDF.

Each function takes a file and yields the names and contents of its members, and what lies between
and after them.
"""

from __future__ import annotations

import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final, cast

from secure_bloom.tracing.apart import SectionWriter, sections_of
from secure_bloom.tracing.content import (
    HEAD,
    MOST_IN_MEMORY,
    Content,
    Opened,
    Part,
    Span,
    Stream,
    is_marked,
    size_of,
    within,
)
from secure_bloom.tracing.packed import (
    LAST_RECORD,
    PIECE,
    ZIP_ENTRY,
    Budget,
    UnreadError,
    check_at_once,
    extra,
    kind_of,
)

#: The bit of a member's flags that says that it is encrypted (APPNOTE.TXT 4.4.4).
_WITH_PASSWORD: Final = 1
#: The bit that says that a description follows the bytes.
_IS_DESCRIBED: Final = 8


def zip_content(file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    """Yield the names and contents of a zip archive's members, and the bytes of no member."""
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
        at = within(place, f"member {n}")
        if member.flag_bits & _WITH_PASSWORD:
            opened.missed(at, UnreadError("a member with a password"))
        elif not member.is_dir():
            yield Stream(at, _zip_pieces(archive, member, opened))
    for start, stop in _gaps(file, members, archive.start_dir):
        yield Span(place, start, stop)
    yield Span(place, end)


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


def _check_directory(file: BinaryIO) -> int:
    """Return the offset after the archive's last record. A comment and other bytes may follow.

    Raises UnreadError for an archive with more members than fit into memory, because zipfile
    creates an object for each directory entry at once.
    """
    found = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not found:
        return size_of(file)
    size, end = found[zipfile._ECD_SIZE], found[zipfile._ECD_LOCATION]  # type: ignore[attr-defined]
    check_at_once(2 * size, "the directory of a zip archive")
    # In large archives another record lies between.
    file.seek(max(0, end - size - HEAD))
    entries = file.read(size + HEAD).count(ZIP_ENTRY)
    check_at_once(entries * _ENTRY_COST + _ENTRY_BYTE * size, "the directory of a zip archive")
    file.seek(0)
    return int(end) + LAST_RECORD


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
    return Part(place=within(place, "names of members"), pieces=iter([content]))


def tar_content(file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    """Yield the names and contents of a tar archive's members, and what follows its end."""
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for n, member in enumerate(iter(archive.next, None), 1):
                # Else all members that were passed stay in memory.
                archive.members.clear()  # type: ignore[attr-defined]
                yield _names([member.name, member.linkname], within(place, f"member {n}"))
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    pieces = _tar_pieces(content, opened)
                    yield Stream(within(place, f"member {n}"), pieces)
            end = archive.offset
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        raise UnreadError("a tar archive that is damaged or cut short") from error
    file.seek(end)
    while piece := file.read(PIECE):
        end += len(piece) - len(piece.lstrip(b"\0"))
        if piece.strip(b"\0"):
            # Another archive may follow the zeros at the end of one.
            yield Span(place, end)
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


def seven_zip_content(file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    """Yield the members of a 7z archive, which are decoded in a process of limited memory.

    The archive's own header says how much memory its decoding takes, and that header is packed too.
    """
    # Without the library no process is started.
    extra("py7zr")
    head = file.read(_START_OF_7Z.size)
    if len(head) < _START_OF_7Z.size:
        raise UnreadError("a 7z archive that is cut short")
    # The header comes last: its offset after these bytes, and its size (7zFormat.txt).
    checksum, offset, size, _ = _START_OF_7Z.unpack(head)
    end = _START_OF_7Z.size + offset + size
    if checksum != zlib.crc32(head[12:]) or end > size_of(file):
        raise UnreadError("a 7z archive that is damaged or cut short")
    opened.budget.take_process()
    for n, section in enumerate(sections_of(_members_of_7z, file, "a 7z archive")):
        if not n:
            yield Part(place=within(place, "names of members"), pieces=section.pieces)
            continue
        pieces = _counted(section.pieces, opened.budget)
        yield Stream(within(place, f"member {n}"), pieces)
    yield Span(place, end)


#: After the mark and the version: a checksum of the rest, which says where the header is.
_START_OF_7Z: Final = struct.Struct("<8xIQQ4s")


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


def pdf_content(file: BinaryIO, opened: Opened, place: str) -> Iterator[Content]:
    """Yield the zlib-packed streams of a PDF. Texts that kerning splits are also yielded joined.

    Streams that are files, and files after the PDF's end, are opened.
    """
    content = file.read(MOST_IN_MEMORY)
    if file.read(1):
        opened.missed(place, UnreadError(f"a PDF of more than {MOST_IN_MEMORY:,} bytes"))
    if b"/Encrypt" in content[-4096:]:
        raise UnreadError("a PDF with a password")
    for n, match in enumerate(_STREAM.finditer(content), 1):
        at = within(place, f"stream {n}")
        plain, is_whole = _stream_of_pdf(memoryview(content)[match.end() :], opened.budget)
        if not is_whole:
            what = f"a damaged stream, or a stream of more than {_LONGEST_STREAM:,} bytes"
            opened.missed(at, UnreadError(what))
        if is_marked(plain, least=3):
            yield Stream(at, iter([plain]))
        elif plain:
            # [(al) 20 (ice)] TJ: numbers move letters, and the text goes on.
            yield Part(place=at, pieces=iter([plain, b"\n", _KERNING.sub(b"", plain)]))
        elif is_marked(content[match.end() : match.end() + HEAD], least=3):
            end = content.find(b"endstream", match.end())
            yield Span(at, match.end(), end if end >= 0 else None)
    end = content.rfind(_END_OF_PDF)
    if end >= 0:
        yield Span(place, end + len(_END_OF_PDF))


_LONGEST_STREAM: Final = 16 * PIECE
#: Without a way back: a text may have millions of spaces or digits here.
_KERNING: Final = re.compile(rb"\)\s*+(?:-?[\d.]++\s*+)?+\(")


def _stream_of_pdf(packed: memoryview, budget: Budget) -> tuple[bytes, bool]:
    """Return the content of a stream up to its end or its damage, and whether it is complete.

    zlib gets the packed bytes in growing pieces, because it copies the bytes after the stream's
    end.
    """
    unpacker, plain, step = zlib.decompressobj(), b"", 512
    is_zlib = kind_of(bytes(packed[:4])) == "zlib"
    with suppress(zlib.error):
        while packed and not unpacker.eof:
            piece = unpacker.decompress(packed[:step], _LONGEST_STREAM + 1 - len(plain))
            budget.take(len(piece))
            plain += piece
            if len(plain) > _LONGEST_STREAM:
                return plain, False
            packed, step = packed[step:], min(2 * step, 1 << 16)
    return plain, unpacker.eof or not is_zlib
