"""Recognize packed data that does not begin with the mark of its format.

    for kind in without_mark(head, size): ...   codecs that may have packed a file
    evenness.take(piece)                        counts the windows of a file that look packed
    evenness.is_packed                          whether a file that nothing opened may hide texts

Some codecs write no mark, so they are tried. Other packed or encrypted data is recognized by its
statistics: it uses all 256 bytes about equally, while texts, numbers and machine code use some
bytes often. So two bytes of a window of packed data are equal no more often than by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from secure_bloom.tracing.packed import LARGEST_BLOCK, is_utf8

#: Bytes of a window, the fewest of a file, and how often more than by chance two are equal.
_WINDOW, _FEWEST, _MOST_EQUAL = 512, 256, 1.35
#: Files that hold pictures, sound, films or fonts: they are packed, and have no texts.  Sketches of
#: Iceberg (Puffin) are hashes.
_MEDIA: Final = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"OggS", b"ID3", b"fLaC",
    b"\x1aE\xdf\xa3", b"wOFF", b"wOF2", b"\0\1\0\0\0", b"OTTO", b"II*\0", b"MM\0*",
    b"PFA1", b"\0\0\1\0", b"\xff\xfb",
)  # fmt: skip
#: Keys, certificates and signatures: DER (X.509, PKCS 1, 8 and 10), SSH, OpenPGP.  And a filter of
#: Hudi: its version, the number of hashes, and their kind.
_KEYS: Final = re.compile(
    rb"\x30\x82..(?:\x30\x82..(?:\xa0\x03)?\x02\x01|\x02(?:\x01[\0\x01]|\x82)|\x30.\x06\x09\x2a\x86\x48)"
    rb"|openssh-key-v1\0|\0{3}[\x07-\x13](?:ssh|ecdsa)-|[\x89\x95\x99]..\x04"
    rb"|\xff{4}\0{3}[\x01-\x40][\0\x01]\0",
    re.DOTALL,
)
#: Programs have tables of numbers that look packed: only if most of a program does, it is.
_PROGRAMS: Final = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm")


def is_media(head: bytes) -> bool:
    """Return whether a file begins as pictures, sound, films, fonts, keys and filters do."""
    return head.startswith(_MEDIA) or head[4:8] == b"ftyp" or _KEYS.match(head) is not None


class Evenness:
    """Measures how much of a file looks packed or encrypted."""

    def __init__(self, head: bytes) -> None:
        self._is_program = head.startswith(_PROGRAMS)
        self._even = self._windows = 0
        self._is_asked = not is_media(head)

    def take(self, piece: bytes) -> None:
        """Look at the next bytes of the file."""
        if not self._is_asked or len(piece) < _FEWEST or is_utf8(piece):
            self._windows += len(piece) // _WINDOW
            return
        size = min(_WINDOW, len(piece))
        count = len(piece) // size
        windows = np.frombuffer(piece, np.uint8, count * size).reshape(count, size)
        found = np.bincount(
            (windows + (np.arange(count) << 8)[:, None]).ravel(), minlength=count << 8
        ).reshape(count, 256)
        equal = (found * (found - 1)).sum(axis=1) * 256 / (size * (size - 1))
        self._even += int((equal < _MOST_EQUAL).sum())
        self._windows += count

    @property
    def is_packed(self) -> bool:
        """Whether some window looks packed or encrypted.

        A program needs more than half of its windows.
        """
        return self._even > (self._windows // 2 if self._is_program else 0)


def without_mark(head: bytes, size: int, *, is_even: bool) -> Iterator[str]:
    """Yield the codecs that may have packed a file of ``size`` bytes that begins with ``head``."""
    yield from (kind for kind, may_be in _CODECS.items() if may_be(head, size))
    # These begin with any bytes. Of a few bytes nobody sees whether they look packed.
    if is_even or size < _FEWEST:
        yield from ("deflate", "brotli")


def _is_hadoop(head: bytes, size: int) -> bool:
    """Return whether the lengths of a block and of its first chunk are possible."""
    whole, chunk = (int.from_bytes(head[at : at + 4], "big") for at in (0, 4))
    return 0 < whole <= LARGEST_BLOCK and 0 < chunk <= min(size - 8, whole + whole // 6 + 64)


def _is_block(length: int, size: int) -> bool:
    """Return whether a block of ``size`` bytes may unpack to ``length``.

    LZ4 packs at most 255 to 1.
    """
    return size - size // 32 - 64 <= length <= min(255 * size, LARGEST_BLOCK)


def _is_lzma(head: bytes, _: int) -> bool:
    """Return whether a file can begin with lzma properties, a size, and the coder's first byte."""
    return len(head) > 13 and head[0] < 225 and head[10:14] in (b"\0" * 4, b"\xff\xff\xff\0")


def _varint(head: bytes) -> int:
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(head[: _length(head)]))


def _length(head: bytes) -> int:
    return next((i for i, byte in enumerate(head[:5], 1) if byte < 0x80), 0)


#: Codec -> whether the first bytes and the size of a file rule it out.
_CODECS: Final[dict[str, Callable[[bytes, int], bool]]] = {
    "snappy of Hadoop": _is_hadoop,
    "lz4 of Hadoop": _is_hadoop,
    "a snappy block": lambda head, size: _is_block(_varint(head), size),
    "an lz4 block": lambda head, size: _is_block(int.from_bytes(head[:4], "little"), size),
    "lzma": _is_lzma,
}
