"""Streams that are decompressed within a budget: every member, frame and block of a file.

A decompressor takes a file and yields its content in pieces.  What follows the packed part is
skipped: bytes between members and after the last one are searched as they are stored.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, BinaryIO, Final

from secure_bloom.running.memory_budget import MemoryBudgetError, refuse_beyond

#: Bytes that are read, and decompressed, at a time.
PIECE: Final = 1 << 20
#: The memory that a dictionary of xz, lzma or zstd may take.
_MOST_DICTIONARY: Final = 1 << 30


class UnreadError(Exception):
    """Why a part of a file was not read. The text holds nothing of the file's content."""


class Budget:
    """The bytes that all parts of a file may have when they are decoded."""

    def __init__(self, stored: int, least: int, times: int) -> None:
        self._most = self._left = least + times * stored

    def take(self, size: int) -> None:
        """Count decoded bytes. Raises UnreadError when they are too many."""
        self._left -= size
        if self._left < 0:
            raise UnreadError(f"more than {self._most:,} bytes when decoded")


def check_at_once(size: int, what: str) -> None:
    """Raise UnreadError for ``what`` if it takes more memory at once than the budget."""
    try:
        refuse_beyond(size, what)
    except MemoryBudgetError as error:
        raise UnreadError(error.message) from None


def decompressed(file: BinaryIO, kind: str, budget: Budget) -> Iterator[bytes]:
    """Yield the content of a packed file. Raises UnreadError for what cannot be unpacked."""
    try:
        for piece in _DECOMPRESSORS[kind](file):
            budget.take(len(piece))
            yield piece
    except UnreadError:
        raise
    except (OSError, ValueError, EOFError, MemoryError, zlib.error, lzma.LZMAError) as error:
        raise UnreadError(f"{kind} data that is damaged or cut short") from error


def _with(new: Callable[[], Any], *, name: str) -> Callable[[BinaryIO], Iterator[bytes]]:
    """Return a decompressor by objects of the standard library, of which each reads one member."""

    def pieces(file: BinaryIO) -> Iterator[bytes]:
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
                return

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
    zstandard = extra("zstandard")
    reader = zstandard.ZstdDecompressor(max_window_size=_MOST_DICTIONARY).stream_reader(
        file, read_across_frames=True, closefd=False
    )
    try:
        while piece := reader.read(PIECE):
            yield piece
    except zstandard.ZstdError as error:
        raise UnreadError("zstd data that is damaged, or has a dictionary of its own") from error


def _lz4(file: BinaryIO) -> Iterator[bytes]:
    frame = extra("lz4.frame")
    data = file.read(PIECE)
    while data:
        if _is_skippable(data):
            data = _after_skippable(file, data)
            continue
        if not data.startswith(_MAGIC["lz4"]):
            return
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


def _is_skippable(data: bytes) -> bool:
    """Return whether a frame is one that decompressors skip. It is searched as it is stored."""
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
    "lzma": b"\x5d\x00\x00",
    "zlib": b"\x78",
}
_DECOMPRESSORS: Final[dict[str, Callable[[BinaryIO], Iterator[bytes]]]] = {
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
    "snappy": _snappy,
}
#: The flags that a gzip member may have; decompressors refuse others (RFC 1952, 2.3.1.2).
_GZIP_FLAGS: Final = bytes(range(1 << 5))
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
}


def kind_of(head: bytes) -> str | None:
    """Return the kind of packed data that begins with ``head``, or None."""
    for kind in ("gzip", "bzip2", "xz", "zstd", "lz4", "snappy"):
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
    """Return whether a file begins as lzma data that knows its size."""
    return head.startswith(b"\x5d\x00\x00") and len(head) > 13 and head[10:13] == b"\0\0\0"


#: What may begin inside other bytes: streams, and files that are opened with all that follows.
_EMBEDDED: Final = {
    **{kind: _MAGIC[kind] for kind in ("gzip", "xz", "zstd", "lz4", "snappy")},
    "bzip2": b"BZh91AY&SY",
}
FOREIGN: Final = {
    "Parquet": b"PAR1",
    "Avro": b"Obj\x01",
    "SQLite": b"SQLite format 3\0",
    "7z": b"7z\xbc\xaf\x27\x1c",
}


def embedded(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield where packed data may begin inside ``data``, and of which kind."""
    # What is packed has other bytes than texts.
    if data.isascii():
        return
    for kind, magic in (_EMBEDDED | FOREIGN).items():
        at = data.find(magic)
        while at >= 0:
            if kind != "gzip" or not data[at + 3 : at + 4].translate(None, _GZIP_FLAGS):
                yield at, kind
            at = data.find(magic, at + 1)


class Joined(io.RawIOBase):
    """A file that reads pieces one after the other, forwards only."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._left = pieces, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill as much of the buffer as one piece fills."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
