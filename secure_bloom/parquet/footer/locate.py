"""Find the footer at the end of a file, and read the part that needs no key, in all three modes.

    plaintext:  FileMetaData | length (4, LE) | PAR1
    signed:     FileMetaData | nonce (12) | tag (16) | length (4, LE) | PAR1
    encrypted:  FileCryptoMetaData | FileMetaData module | length (4, LE) | PARE

Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.scan import FooterScan, scan_footer
from secure_bloom.parquet.structures.metadata import EncryptionAlgorithm, FileCryptoMetaData
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.reports.text import counted
from secure_bloom.storage import InputFile
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    from secure_bloom.storage.column_mapping import ColumnMapping

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
#: Footer length and magic.
TRAILER_SIZE = 8
#: One read of this size holds the footer of most files, and spares a second request.
_FIRST_READ = 64 * 1024
#: By this number of bytes a text and a file that is cut short can be distinguished.
_LOOKED_AT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a file, as someone without keys can read it.

    ``path``, ``size`` and ``identity`` describe the file when it was read. ``extents`` are the
    ranges that were read.  ``offset`` is where the footer starts and the file's data ends.
    ``sealed`` is the encrypted FileMetaData module, or the signature, or empty. ``clear`` is the
    part before it. ``scan`` is the scan of a FileMetaData in clear.  ``column_names`` are the
    table's column names.
    """

    path: str
    size: int
    identity: tuple[object, ...]
    extents: tuple[Extent, ...]
    offset: int
    mode: FooterMode
    clear: bytes
    sealed: bytes
    scan: FooterScan | None
    algorithm: EncryptionAlgorithm | None
    key_metadata: bytes | None
    column_names: ColumnMapping | None


def read_tail(file: InputFile, *, end: int | None = None) -> Tail:
    """Find the footer of ``file``.

    Raises FormatError if the file does not end as a Parquet file does. ``end`` is where the footer
    ends: the end of the file, unless an append was cut short.
    """
    magic, offset, body, extents = _located(file, file.size if end is None else end)
    part = _part_in_clear(body) if magic == MAGIC else _part_before_module(body)
    return Tail(
        path=file.path,
        size=file.size,
        identity=file.identity,
        extents=extents,
        offset=offset,
        mode=part.mode,
        clear=body[: part.length],
        sealed=body[part.length :],
        scan=part.scan,
        algorithm=part.algorithm,
        key_metadata=part.key_metadata,
        column_names=file.column_names,
    )


class _FoundFooter(NamedTuple):
    """The bytes of a footer, where they start, the magic after them, and what was read for it."""

    magic: bytes
    offset: int
    body: bytes
    extents: tuple[Extent, ...]


def _located(file: InputFile, end: int) -> _FoundFooter:
    # The magic is at both ends; fewer bytes would let one be taken for the other.
    if end < len(MAGIC) + TRAILER_SIZE:
        raise FormatError(f"not a Parquet file: it has {counted(end, 'byte')}")
    first = min(end, _FIRST_READ)
    last = file.read_at(end - first, first)
    # The magic at the file's start says the same, and reading it would be one more request.
    magic = last[-len(MAGIC) :]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise _foreign(file, last)
    # Unsigned: a negative length would put the footer after the end of the file.
    length = int.from_bytes(last[-TRAILER_SIZE : -len(MAGIC)], "little")
    offset = end - TRAILER_SIZE - length
    # The length is any number of four bytes.  A footer cannot start inside the first magic.
    if offset < len(MAGIC):
        raise FormatError(f"the footer's length is {length}, the file has {end} bytes")
    have, extents = first - TRAILER_SIZE, ((end - first, end),)
    if length <= have:
        return _FoundFooter(magic, offset, last[have - length : have], extents)
    body = file.read_at(offset, length)
    return _FoundFooter(magic, offset, body, (*extents, (offset, offset + length)))


#: What an error says of a file of texts.
IS_TEXT = "it ends as a text does, such as CSV or JSON"


def _foreign(file: InputFile, last: bytes) -> FormatError:
    """Return the error for a file that does not end as Parquet files do."""
    # The first character may be cut.
    text = last[-_LOOKED_AT:].decode("utf-8", "replace").lstrip("\ufffd")
    is_text = "\ufffd" not in text and all(c.isprintable() or c in "\r\n\t" for c in text)
    # A Parquet file that is cut short may end within a text, too.
    if is_text and file.read_at(0, len(MAGIC)) not in (MAGIC, MAGIC_ENCRYPTED):
        return FormatError(
            f"not a Parquet file: {IS_TEXT}",
            hint="write the table as Parquet; of a folder only Parquet files are taken",
        )
    return FormatError(
        "not a Parquet file, or cut short: it does not end in PAR1 or PARE",
        hint="if a run with --in-place was killed here, the next such run repairs the file",
    )


class _Part(NamedTuple):
    """The part of a footer that needs no key: the first ``length`` bytes."""

    length: int
    mode: FooterMode
    scan: FooterScan | None
    algorithm: EncryptionAlgorithm | None
    key_metadata: bytes | None


def _part_before_module(body: bytes) -> _Part:
    """Return the FileCryptoMetaData before an encrypted footer."""
    crypto, length = measured_record(FileCryptoMetaData, body)
    # No tag covers bytes after the module, so there must be none.
    if cipher.frame_length(body, length) != len(body) - length:
        raise FormatError("the encrypted footer module does not fill the footer's length")
    mode = FooterMode.ENCRYPTED
    return _Part(length, mode, None, crypto.encryption_algorithm, crypto.key_metadata)


def _part_in_clear(body: bytes) -> _Part:
    """Return a FileMetaData in clear.

    An algorithm in it means that a signature follows.  Encryption.md 5.5.
    """
    scan = scan_footer(body)
    algorithm, length = scan.metadata.encryption_algorithm, scan.length
    signature = 0 if algorithm is None else cipher.SIGNATURE_SIZE
    # The length must fit to the byte.  Else one reader could take the bytes between a footer and
    # its trailer for a signature, and another one for nothing.
    if len(body) != length + signature:
        raise FormatError(
            f"the footer takes {length} bytes and a signature of {signature}, "
            f"its length says {len(body)}"
        )
    mode = FooterMode.PLAINTEXT if algorithm is None else FooterMode.SIGNED
    return _Part(length, mode, scan, algorithm, scan.metadata.footer_signing_key_metadata)


def with_trailer(body: bytes, magic: bytes) -> bytes:
    """Return a footer with its length and magic: the last bytes of a file."""
    # The length counts a signature or FileCryptoMetaData too (Encryption.md 5.4 and 5.5).
    return body + len(body).to_bytes(4, "little") + magic
