"""Java's modified UTF-8: NUL takes two bytes, and a character beyond 16 bits two surrogates.

It is the encoding of ``DataOutput.writeUTF``: CESU-8 with C0 80 for NUL.
"""

from __future__ import annotations

import struct
from typing import Final

from secure_bloom.errors import FormatError

_NUL: Final = b"\xc0\x80"


def encode_name(text: str) -> bytes:
    """Return the bytes of ``text`` in modified UTF-8."""
    utf16 = text.encode("utf-16-be", "surrogatepass")
    units = map(chr, struct.unpack(f">{len(utf16) // 2}H", utf16))
    # Each unit of UTF-16 is encoded alone, halves of pairs too: three bytes each.
    return "".join(units).encode("utf-8", "surrogatepass").replace(b"\0", _NUL)


def decode_name(data: bytes) -> str:
    """Return the text of ``data``; FormatError where it is none, or not written in the one way."""
    try:
        units = data.replace(_NUL, b"\0").decode("utf-8", "surrogatepass")
        text = units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
    except UnicodeDecodeError:
        text = None
    # One name must not have two spellings: a reader that compares bytes would miss an index.
    if text is None or encode_name(text) != data:
        raise FormatError("a name is not in Java's modified UTF-8")
    return text
