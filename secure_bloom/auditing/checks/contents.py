"""Recognize the content of a file of any name: Parquet, pages in clear (also packed), or keys."""

from __future__ import annotations

import base64
import bz2
import enum
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator

from secure_bloom.auditing.checks.filter_search import has_plain_page
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, TRAILER_SIZE, read_tail
from secure_bloom.storage import InputFile

#: The first bytes of a file that are searched, and the most that they are unpacked to.
_SEARCHED, _MOST_UNPACKED = 4 * 1024 * 1024, 1024 * 1024
#: An archive of more bytes than this, and members beyond this number, are not unpacked.
_LARGEST_ARCHIVE, _MOST_MEMBERS = 64 * 1024 * 1024, 100
#: A file with keys is small.
_MOST_KEYS = 1024 * 1024
_KEYS = re.compile(
    rb'"master_keys"\s*:\s*\{\s*"|"data_keys"\s*:\s*\{\s*"|"explicit"\s*:\s*\{\s*"(?:footer|columns)"'
    rb"|parquet\.encryption\.key\.list\W+\w[^\r\n]*:"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)


class Content(enum.Enum):
    """The kinds of files that an audit distinguishes."""

    FOOTER = "ends with the footer of a Parquet file"
    PAGES = "has pages of a Parquet file in clear, and no footer"
    KEYS = "holds keys"
    OTHER = "anything else"


def content_of(file: InputFile, keys: Collection[bytes] = ()) -> Content:
    """Return the kind of the file. ``keys`` are the forms of master keys to look for."""
    if _ends_with_footer(file):
        return Content.FOOTER
    head = file.read_at(0, min(file.size, _SEARCHED))
    if has_plain_page(head):
        return Content.PAGES
    if file.size <= _MOST_KEYS and holds_keys(head, keys):
        return Content.KEYS
    return Content.PAGES if any(map(has_plain_page, _unpacked(file, head))) else Content.OTHER


def _ends_with_footer(file: InputFile) -> bool:
    if file.size <= TRAILER_SIZE + len(MAGIC):
        return False
    # Any first four bytes: pyarrow and DuckDB look at the last ones alone.
    if file.read_at(file.size - len(MAGIC), len(MAGIC)) not in (MAGIC, MAGIC_ENCRYPTED):
        return False
    try:
        read_tail(file)
    except SecureBloomError:
        return False
    return True


def holds_keys(content: bytes, keys: Collection[bytes]) -> bool:
    """Return whether bytes hold a keyring, keys in properties, a private key, or one of ``keys``.

    ``keys`` come from :func:`forms_of`.
    """
    return _KEYS.search(content) is not None or any(key in content for key in keys)


def forms_of(keys: Collection[bytes]) -> tuple[bytes, ...]:
    """Return the forms in which a text or a program may hold keys: raw, Base64, hexadecimal."""
    found: dict[bytes, None] = {}
    for key in keys:
        spelled = (base64.b64encode(key), base64.urlsafe_b64encode(key))
        texts = (key.hex(), key.hex().upper())
        found |= dict.fromkeys([key, *(it.rstrip(b"=") for it in spelled)])
        found |= dict.fromkeys(text.encode() for text in texts)
    return tuple(found)


def _unpacked(file: InputFile, head: bytes) -> Iterator[bytes]:
    """Yield the first bytes of each packed content, or nothing if the file is no archive."""
    for magic, unpack in _PACKED.items():
        if head.startswith(magic):
            try:
                yield unpack(head)
            # Damaged, or of another kind: nobody unpacks it either.
            except (OSError, ValueError, EOFError, zlib.error, lzma.LZMAError):
                return
    if head.startswith(b"PK\3\4") and file.size <= _LARGEST_ARCHIVE:
        yield from _members(file.read_at(0, file.size))


def _members(data: bytes) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[:_MOST_MEMBERS]:
                with archive.open(info) as member:
                    yield member.read(_MOST_UNPACKED)
    # With a password, damaged, or packed in a way that is not known here.
    except (zipfile.BadZipFile, RuntimeError, OSError, ValueError, EOFError, zlib.error):
        return


def _from_zstd(head: bytes) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(head), "zstd") as stream:
        found: bytes = stream.read(_MOST_UNPACKED)
        return found


#: The first bytes of a packed file -> its unpacked beginning.
_PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda head: zlib.decompressobj(wbits=47).decompress(head, _MOST_UNPACKED),
    b"BZh": lambda head: bz2.BZ2Decompressor().decompress(head, _MOST_UNPACKED),
    b"\xfd7zXZ\0": lambda head: lzma.LZMADecompressor(memlimit=1 << 28).decompress(
        head, _MOST_UNPACKED
    ),
    b"\x28\xb5\x2f\xfd": _from_zstd,
}
