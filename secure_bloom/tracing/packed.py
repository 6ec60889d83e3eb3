"""Decompress streams within a budget: every member, frame and block of a file.

A decompressor takes a file and yields its content in pieces.  Bytes between members and after the
last member are not unpacked. They are searched as they are stored.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, BinaryIO, Final, cast

from secure_bloom.running.memory_budget import MemoryBudgetError, refuse_beyond
from secure_bloom.running.positioned_stream import PositionedStream

#: Bytes that are read, and decompressed, at a time.
PIECE: Final = 1 << 20
#: A block of codecs that decode each block at once has at most these bytes; of old LZ4, 8 MiB.
LARGEST_BLOCK: Final = 64 << 20
_OLD_BLOCK: Final = 8 << 20
#: The memory that a dictionary of xz, lzma or zstd may take.
_MOST_DICTIONARY: Final = 1 << 30
#: ORC files and 7z archives in one file, each of which a process of its own decodes.
MOST_PROCESSES: Final = 300
TOO_MANY: Final = f"more than {MOST_PROCESSES} ORC files and 7z archives in a file"


class UnreadError(Exception):
    """Why a part of a file was not read. The text holds nothing of the file's content."""


class Budget:
    """The number of bytes that all parts of a file may have together when they are decoded.

    ``processes`` has an item for each process that may decode a part. Files in a file share it.
    """

    def __init__(
        self, stored: int, least: int, times: int, processes: Iterator[int] | None = None
    ) -> None:
        self._most = self._left = least + times * stored
        self.processes = iter(range(MOST_PROCESSES)) if processes is None else processes

    def take(self, size: int) -> None:
        """Count decoded bytes. Raises UnreadError when they are too many."""
        self._left -= size
        self.check()

    def check(self) -> None:
        """Raise UnreadError if too many bytes were decoded before."""
        if self._left < 0:
            raise UnreadError(f"more than {self._most:,} bytes when decoded")

    def take_process(self) -> None:
        """Count a process. Raises UnreadError when they are too many."""
        if next(self.processes, None) is None:
            raise UnreadError(TOO_MANY)


def check_at_once(size: int, what: str) -> None:
    """Raise UnreadError for ``what`` if it takes more memory at once than the budget."""
    try:
        refuse_beyond(size, what)
    except MemoryBudgetError as error:
        raise UnreadError(error.message) from None


def decompressed(
    file: BinaryIO, kind: str, budget: Budget, left: Callable[[int], object] | None = None
) -> Iterator[bytes]:
    """Yield the content of a packed file. Raises UnreadError for what cannot be unpacked.

    ``left`` gets the number of bytes that were read from ``file`` but are not packed data.
    """

    def counted(pieces: _Unpacking) -> Iterator[bytes]:
        unused = yield from pieces
        if left is not None:
            left(unused or 0)

    try:
        for piece in counted(_DECOMPRESSORS[kind](file)):
            budget.take(len(piece))
            yield piece
    except UnreadError:
        raise
    except (OSError, ValueError, EOFError, MemoryError, zlib.error, lzma.LZMAError) as error:
        raise UnreadError(f"{kind} data that is damaged or cut short") from error


#: Yields the content of a packed file; returns how many of the bytes read are no part of it.
_Unpacking = Generator[bytes, None, int]


def _with(new: Callable[[], Any], *, name: str) -> Callable[[BinaryIO], _Unpacking]:
    """Return a decompressor made from a standard-library class that reads one member."""

    def pieces(file: BinaryIO) -> _Unpacking:
        current, data, members = new(), file.read(PIECE), 0
        while data or not getattr(current, "needs_input", True):
            yield from _unpacked(current, data)
            if not current.eof:
                data = file.read(PIECE)
                if not data:
                    raise UnreadError(f"{name} data that is cut short")
                continue
            members += 1
            # Padding between members is zeros.
            data = (current.unused_data or b"").lstrip(b"\0") or file.read(PIECE)
            data = data.lstrip(b"\0")
            current = new()
            if data and not data.startswith(_MAGIC[name][: len(data)]):
                return len(data)
        return 0

    return pieces


def _unpacked(current: Any, data: bytes) -> Iterator[bytes]:
    if isinstance(current, bz2.BZ2Decompressor | lzma.LZMADecompressor):
        piece = current.decompress(data, PIECE)
        while piece:
            yield piece
            if current.eof or current.needs_input:
                return
            piece = current.decompress(b"", PIECE)
        return
    piece = current.decompress(data, PIECE)
    while piece:
        yield piece
        if current.eof or not current.unconsumed_tail:
            return
        piece = current.decompress(current.unconsumed_tail, PIECE)


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    try:
        zstandard = extra("zstandard")
    except UnreadError:
        # Arrow refuses dictionaries of more than 128 MiB.
        yield from _by_arrow(file, "zstd")
        return
    # The reader does not say that the last frame is cut short: one more that follows must be read.
    end = zstandard.ZstdCompressor().compress(_END)
    pieces = chain(iter(partial(file.read, PIECE), b""), [end])
    reader = zstandard.ZstdDecompressor(max_window_size=_MOST_DICTIONARY).stream_reader(
        Joined(pieces), read_across_frames=True
    )
    held = b""
    try:
        # Unlike `read`, it returns what precedes damage.
        while piece := reader.read1(PIECE):
            held += piece
            yield held[: -len(_END)]
            held = held[-len(_END) :]
    except zstandard.ZstdError as error:
        raise UnreadError("zstd data that is damaged, or has a dictionary of its own") from error
    if held != _END:
        raise UnreadError("zstd data that is cut short")


_END: Final = b"the end of the file"


def end_of_zstd(file: BinaryIO, start: int, steps: Iterator[int]) -> int:
    """Return where consecutive frames end, by the sizes of their blocks (RFC 8878, 3.1.1).

    If the last frame is damaged or cut short, this is the file's end. ``steps`` has an item for
    each block that may be looked at.
    """
    size, at = file.seek(0, io.SEEK_END), start
    for _ in steps:
        file.seek(at)
        head = file.read(8)
        if _is_skippable(head):
            at += 8 + int.from_bytes(head[4:8], "little")
            continue
        if not head.startswith(_MAGIC["zstd"]):
            return min(at, size)
        flags = head[4] if len(head) > 4 else 0
        is_single = flags >> 5 & 1
        at += 6 - is_single + (0, 1, 2, 4)[flags & 3] + (is_single, 2, 4, 8)[flags >> 6]
        for _ in steps:
            file.seek(at)
            block = int.from_bytes(file.read(3), "little")
            is_last, kind, length = block & 1, block >> 1 & 3, block >> 3
            at += 3 + (1 if kind == 1 else length)
            if kind == 3 or at > size:
                return size
            if is_last:
                break
        at += 4 * (flags >> 2 & 1)
    return size


def _lz4(file: BinaryIO) -> _Unpacking:
    try:
        frame = extra("lz4.frame")
    except UnreadError:
        # Arrow refuses frames that are to be skipped.
        yield from _by_arrow(file, "lz4")
        return 0
    data = file.read(PIECE)
    while data:
        if _is_skippable(data):
            data = _after_skippable(file, data)
            continue
        if not data.startswith(_MAGIC["lz4"]):
            return len(data)
        current = frame.LZ4FrameDecompressor()
        while not current.eof:
            try:
                piece = current.decompress(data, PIECE)
            except RuntimeError as error:
                raise UnreadError("lz4 data that is damaged") from error
            if piece:
                yield piece
            data = b"" if not current.needs_input else file.read(PIECE)
            if current.needs_input and not data and not current.eof:
                raise UnreadError("lz4 data that is cut short")
        data = (current.unused_data or b"") + data or file.read(PIECE)
    return 0


def _skippable_frames(file: BinaryIO) -> Iterator[tuple[int, int]]:
    offset, overlap = 0, b""
    while piece := file.read(PIECE):
        data, start = overlap + piece, offset - len(overlap)
        for match in _SKIPPABLE.finditer(data):
            yield start + match.end(), int.from_bytes(match[1], "little")
        offset += len(piece)
        overlap = data[-7:]
        file.seek(offset)


#: The mark of a frame, and its size (RFC 8878, 3.1.2).
_SKIPPABLE: Final = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18(.{4})", re.DOTALL)


def _skippable_chunks(file: BinaryIO) -> Iterator[tuple[int, int]]:
    offset = 0
    while len(head := file.read(4)) == 4:
        size = int.from_bytes(head[1:], "little")
        if 0x80 <= head[0] < _START_OF_STREAM:
            yield offset + 4, size
        offset = file.seek(offset + 4 + size)


#: The kind of a chunk of snappy that begins a stream; kinds from 0x80 to it are skipped.
_START_OF_STREAM: Final = 0xFF
#: Kind of packed data -> yields the start and the size of the content of each frame or chunk that
#: decompressors skip.
SKIPPED: Final[dict[str, Callable[[BinaryIO], Iterator[tuple[int, int]]]]] = {
    "zstd": _skippable_frames,
    "lz4": _skippable_frames,
    "snappy": _skippable_chunks,
}


def _is_skippable(data: bytes) -> bool:
    """Return whether decompressors skip a frame. Its bytes are searched as they are stored."""
    return len(data) >= 8 and data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50


def _after_skippable(file: BinaryIO, data: bytes) -> bytes:
    size = 8 + int.from_bytes(data[4:8], "little")
    while size >= len(data):
        size -= len(data)
        data = file.read(PIECE)
        if not data:
            return b""
    return data[size:]


def _snappy(file: BinaryIO) -> Iterator[bytes]:
    """Yield the chunks of the framing format (framing_format.txt of Snappy)."""
    import pyarrow as pa

    codec = pa.Codec("snappy")
    while head := file.read(4):
        size = int.from_bytes(head[1:], "little")
        body = file.read(size)
        if len(head) < 4 or len(body) < size:
            raise UnreadError("snappy data that is cut short")
        if head[0] == 0x00:
            length = _varint(body[4:])
            if length > 1 << 16:
                raise UnreadError("snappy data that is damaged")
            yield codec.decompress(body[4:], length).to_pybytes()
        elif head[0] == 0x01:
            yield body[4:]
        elif head[0] < 0x80:
            raise UnreadError("snappy data of an unknown kind")


def _blocks_of(
    file: BinaryIO,
    decode: Callable[[bytes, int], bytes],
    skipped: int = 0,
    *,
    has_whole: bool = True,
) -> Iterator[bytes]:
    """Yield blocks as Hadoop writes them: the decoded size of a block, then its chunks.

    Each chunk follows its own size. Without ``has_whole`` the file has only chunks, after a head of
    ``skipped`` bytes.
    """
    file.read(skipped)
    while head := file.read(4):
        left = int.from_bytes(head, "big") if has_whole else LARGEST_BLOCK
        size = 0 if has_whole else int.from_bytes(head, "big")
        while left > 0:
            size = size or int.from_bytes(file.read(4), "big")
            if not 0 < size <= 2 * LARGEST_BLOCK or left > LARGEST_BLOCK:
                raise UnreadError("blocks that are damaged")
            check_at_once(size + left * has_whole, "a packed block")
            piece = decode(file.read(size), left)
            yield piece
            left, size = (left - len(piece) if has_whole and piece else 0), 0


def _from_snappy(packed: bytes, most: int) -> bytes:
    import pyarrow as pa

    length = _varint(packed)
    if not 0 < length <= most:
        raise UnreadError("snappy data that is damaged")
    check_at_once(length, "a snappy block")
    plain: bytes = pa.Codec("snappy").decompress(packed, length).to_pybytes()
    return plain


def _from_lz4(packed: bytes, most: int) -> bytes:
    block = extra("lz4.block")
    check_at_once(most, "an lz4 block")
    try:
        plain: bytes = block.decompress(packed, uncompressed_size=most)
    except block.LZ4BlockError as error:
        raise UnreadError("lz4 data that is damaged") from error
    return plain


def _lz4_block(file: BinaryIO) -> bytes:
    """Return the content of a block. The block begins with its decoded size."""
    size = int.from_bytes(file.read(4), "little")
    plain = _from_lz4(file.read(LARGEST_BLOCK), size)
    if len(plain) != size:
        raise UnreadError("lz4 data that is damaged")
    return plain


def _old_lz4(file: BinaryIO) -> _Unpacking:
    """Yield the blocks of the legacy frames of LZ4 (lz4_Frame_format.md)."""
    while head := file.read(4):
        size = int.from_bytes(head, "little")
        if head != _MAGIC["lz4 of old"]:
            # A size that no block has, or the mark of other packed data.
            if size > _OLD_BLOCK + _OLD_BLOCK // 255 + 16 or head.startswith(_MARKS_OF_STREAMS):
                return len(head)
            yield _from_lz4(file.read(size), _OLD_BLOCK)
    return 0


def _deflate(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a stream of deflate without a header, which must be the whole file."""
    unpacker = zlib.decompressobj(wbits=-15)
    while not unpacker.eof:
        data = file.read(PIECE)
        yield from _unpacked(unpacker, data)
        if unpacker.unused_data or not (data or unpacker.eof):
            raise UnreadError("deflate data that is damaged or cut short")
    if file.read(1):
        raise UnreadError("deflate data that is damaged")


def _by_arrow(file: BinaryIO, codec: str) -> Iterator[bytes]:
    import pyarrow as pa

    # A file of its own, which Arrow closes.
    own = io.BufferedReader(Joined(iter(lambda: file.read(PIECE), b"")))
    with pa.CompressedInputStream(pa.PythonFile(own, mode="r"), codec) as stream:
        while piece := stream.read(PIECE):
            yield piece


def _varint(data: bytes) -> int:
    size = 0
    for i, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return size
    raise UnreadError("snappy data that is damaged")


def extra(module: str) -> Any:
    """Import a module of the extra ``trace``. Raises UnreadError if it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        name = module.partition(".")[0]
        raise UnreadError(f"{name} is not installed: pip install 'secure-bloom[trace]'") from None


_MAGIC: Final = {
    "gzip": b"\x1f\x8b\x08",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\0",
    "zstd": b"\x28\xb5\x2f\xfd",
    "lz4": b"\x04\x22\x4d\x18",
    "snappy": b"\xff\x06\x00\x00sNaPpY",
    "lz4 of old": b"\x02\x21\x4c\x18",
    "snappy of Java": b"\x82SNAPPY\x00",
    "lzma": b"\x5d\x00\x00",
    "zlib": b"\x78",
}
_DECOMPRESSORS: Final[dict[str, Callable[[BinaryIO], Any]]] = {
    "gzip": _with(lambda: zlib.decompressobj(wbits=31), name="gzip"),
    "zlib": _with(lambda: zlib.decompressobj(), name="zlib"),
    "bzip2": _with(bz2.BZ2Decompressor, name="bzip2"),
    "xz": _with(
        lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_DICTIONARY), name="xz"
    ),
    "lzma": _with(
        lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=_MOST_DICTIONARY), name="lzma"
    ),
    "zstd": _zstd,
    "lz4": _lz4,
    "lz4 of old": _old_lz4,
    "snappy": _snappy,
    "snappy of Java": lambda file: _blocks_of(file, _from_snappy, 16, has_whole=False),
    "snappy of Hadoop": lambda file: _blocks_of(file, _from_snappy),
    "lz4 of Hadoop": lambda file: _blocks_of(file, _from_lz4),
    "a snappy block": lambda file: iter([_from_snappy(file.read(LARGEST_BLOCK), LARGEST_BLOCK)]),
    "an lz4 block": lambda file: iter([_lz4_block(file)]),
    "deflate": _deflate,
    "brotli": lambda file: _by_arrow(file, "brotli"),
}
#: Archives that nothing here unpacks: their first bytes, and what they are.
UNPACKABLE: Final = {
    b"Rar!\x1a\x07": "a RAR archive",
    b"LZIP": "lzip data",
    b"\x89LZO\x00": "lzop data",
    b"MSCF\0\0\0\0": "a cabinet archive",
    b"FEA1": "a Feather file of version 1",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Office document",
    b"-----BEGIN PGP MESSAGE": "an encrypted message",
    b"Salted__": "data encrypted by openssl",
    b"age-encryption.org/": "data encrypted by age",
    b"LUKS\xba\xbe": "an encrypted disk",
    b"LRZI": "lrzip data",
    b"7kSt": "a ZPAQ archive",
    b"\x1f\x9d": "data of compress (.Z)",
    b"\x60\xea": "an ARJ archive",
    b"MSWIM\0\0\0": "a WIM archive",
    b"xar!": "a xar archive",
}


def kind_of(head: bytes) -> str | None:
    """Return the kind of packed data that begins with ``head``, or None."""
    for kind in _STREAMS:
        if head.startswith(_MAGIC[kind]):
            return kind
    if _is_skippable(head):
        return "lz4" if b"\x04\x22\x4d\x18" in head[:PIECE] else "zstd"
    if (head.startswith(b"\x5d\x00\x00") and head[5:13] in (b"\xff" * 8,)) or _is_lzma(head):
        return "lzma"
    if len(head) > 2 and head[0] == 0x78 and head[1] in (0x01, 0x5E, 0x9C, 0xDA):
        return "zlib" if int.from_bytes(head[:2], "big") % 31 == 0 else None
    return None


def _is_lzma(head: bytes) -> bool:
    """Return whether a file begins like lzma data whose header has the decoded size."""
    return head.startswith(b"\x5d\x00\x00") and len(head) > 13 and head[10:13] == b"\0\0\0"


_STREAMS: Final = (
    "gzip", "bzip2", "xz", "zstd", "lz4", "snappy", "lz4 of old", "snappy of Java",
)  # fmt: skip
_MARKS_OF_STREAMS: Final = tuple(_MAGIC[kind][:4] for kind in _STREAMS)
#: The first bytes of packed data in a value of a column.
STREAM_MARKS: Final = (
    *(_MAGIC[kind] for kind in _STREAMS), b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda",
)  # fmt: skip
#: What may begin inside other bytes: streams, and files that are opened with all that follows.
_EMBEDDED: Final = {
    **{kind: (_MAGIC[kind], b"") for kind in _STREAMS},
    "gzip": (b"\x1f\x8b\x08", rb"[\x00-\x1f]"),
    "bzip2": (b"BZh", rb"[1-9]1AY&SY"),
    "zlib": (b"\x78", rb"[\x01\x5e\x9c\xda]"),
    # The size of the dictionary, no size or one below 2 ** 40, and the first byte of the coder.
    "lzma": (b"\x5d\x00\x00", rb".{2}(?:\xff{8}|.{5}\0\0\0)\0"),
}
FOREIGN: Final = {
    "Parquet": (b"PAR", b"[1E]"),
    "Arrow": (b"ARROW1", b""),
    # A message of a size, and where its table begins.
    "Arrow stream": (b"\xff\xff\xff\xff", rb"[^\xff].{2}\0[\x04-\x40]\0\0\0"),
    # The last field of the last part.
    "ORC": (b"\x82\xf4\x03\x03ORC", b""),
    "Avro": (b"Obj\x01", b""),
    "SQLite": (b"SQLite format 3\0", b""),
    "7z": (b"7z\xbc\xaf\x27\x1c", b""),
    "RAR": (b"Rar!\x1a\x07", b""),
    # The record that ends an archive.
    "zip": (b"PK\5\6", b""),
    "tar": (b"ustar", rb"\x0000|  \0"),
    # Its first page header, or the length of its first encrypted module.
    "start of Parquet": (b"PAR", rb"(?:1\x15[\0\2\4\6]\x15|[1E][\x1c-\xff].\0\0)"),
    # The first entry of an index, in a chunk that is not packed, or as snappy and lz4, zlib, and
    # zstd begin to pack it.
    "start of ORC": (
        b"ORC",
        rb"(?:..\0)?\n.[\n\x12]|..[\0-\3](?:.{1,4}?\n.[\n\x12]|\xe3[\x62\xe2]|\x28\xb5\x2f\xfd)",
    ),
    # Version, flags and method.
    "start of zip": (b"PK\3\4", rb"[\x0a-\x3f][\0\3].[\0\x08][\0\x08\x09\x0c\x0e\x5d\x5f]\0"),
}
#: Kind of a mark at the start of a file -> the file. Its end has a mark of another kind.
BEGINNINGS: Final = {
    "start of Parquet": "a Parquet file",
    "start of ORC": "an ORC file",
    "start of zip": "a zip archive",
}
#: The mark of an entry of a zip archive's directory, and the bytes of the record that ends the
#: directory, without its comment (APPNOTE.TXT 4.3.12, 4.3.16).
ZIP_ENTRY, LAST_RECORD = b"PK\1\2", 22
#: Kind -> the bytes that are looked for, and the pattern of these with what must follow them.
_MARKS: Final = {
    kind: (mark, re.compile(re.escape(mark) + b"(?:" + after + b")", re.DOTALL))
    for kind, (mark, after) in (_EMBEDDED | FOREIGN).items()
}
#: Bytes of zlib that are unpacked to see whether they are, because its mark has two bytes: as many
#: must come of them.  Places in one search that are tried.
_PROBED, _MOST_PROBES = 512, 2_000


def embedded(data: bytes, known: int) -> Iterator[tuple[int, str]]:
    """Yield where packed data may begin inside ``data``, and of which kind.

    Marks that end in the first ``known`` bytes are left out.  Raises UnreadError if zlib data may
    begin at too many places.
    """
    # What is packed has other bytes than texts.
    if is_utf8(data):
        return
    probes = _MOST_PROBES
    for kind, (mark, pattern) in _MARKS.items():
        # Most bytes lack most marks, and a pattern takes longer.
        for match in pattern.finditer(data) if mark in data else ():
            if match.end() > known:
                probes -= kind == "zlib"
                if probes < 0:
                    raise UnreadError("bytes with too many places at which packed data may begin")
                if kind != "zlib" or _is_zlib(data, match.start()):
                    yield match.start(), kind


def is_stream(kind: str, head: bytes) -> bool:
    """Return whether packed data begins with more than a mark of four bytes.

    Programs that unpack such data have these marks too.
    """
    if kind == "xz":
        return head[8:12] == zlib.crc32(head[6:8]).to_bytes(4, "little")
    return _SURE.match(head) is not None


#: A block of bzip2; the first chunk of snappy; the version and the size of blocks of lz4; no
#: reserved bit, and the size of the first block of zstd, of which the header has at most 14 bytes.
_SURE: Final = re.compile(
    rb"BZh|\xff\x06.{8}[\0\1]..[\0\1]|\x82SNAPPY\0\0\0\0[\1\2]|\x04\x22\x4d\x18[\x40-\x7f][\x40\x50\x60\x70]"
    rb"|\x28\xb5\x2f\xfd[\0\4\x20\x24\x40\x44\x60\x64\x80\x84\xa0\xa4]",
    re.DOTALL,
)


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8. Their start and their end may cut a character."""
    if data.isascii():
        return True
    start = next((i for i in range(min(4, len(data))) if data[i] & 0xC0 != 0x80), 0)
    try:
        data[start:].decode()
    except UnicodeDecodeError as error:
        return error.start >= len(data) - start - 3
    return True


def _is_zlib(data: bytes, at: int) -> bool:
    """Return whether zlib data may begin at an offset. Tries to unpack the first bytes there."""
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data[at : at + _PROBED], PIECE)
    except zlib.error:
        return False
    return len(plain) > _PROBED or (unpacker.eof and len(plain) > _SHORTEST_ZLIB)


#: Shorter texts are not looked for in other bytes.
_SHORTEST_ZLIB: Final = 16


def window_of(file: BinaryIO, start: int, end: int) -> BinaryIO:
    """Return a part of a file as a file of its own."""

    def read_at(offset: int, length: int) -> bytes:
        file.seek(start + offset)
        return file.read(length)

    return cast("BinaryIO", io.BufferedReader(PositionedStream(read_at, end - start), PIECE))


class Joined(io.RawIOBase):
    """A file that reads pieces one after the other, forwards only."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy the rest of one piece into the buffer. Return the number of bytes, 0 at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
