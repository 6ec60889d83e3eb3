"""Find the footer at the end of a file, and read the part that needs no key, in all three modes.

    plaintext:  FileMetaData | length (4, LE) | PAR1
    signed:     FileMetaData | nonce (12) | tag (16) | length (4, LE) | PAR1
    encrypted:  FileCryptoMetaData | FileMetaData module | length (4, LE) | PARE

Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption import cipher
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer.scan import FooterScan, scan_footer
from secure_bloom.parquet.structures.metadata import EncryptionAlgorithm, FileCryptoMetaData
from secure_bloom.parquet.structures.records import measured_record
from secure_bloom.reports.text import counted
from secure_bloom.storage import InputFile

if TYPE_CHECKING:
    from secure_bloom.storage.column_mapping import ColumnMapping

MAGIC = b"PAR1"
MAGIC_ENCRYPTED = b"PARE"
#: Footer length and magic.
TRAILER_SIZE = 8
#: One read of this size holds the footer of most files, and spares a second request.
_FIRST_READ = 64 * 1024
#: This number of bytes tells a text from a file that is cut short.
_LOOKED_AT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a file, as someone without keys can read it.

    ``offset`` is where the footer starts and the file's data ends.  ``sealed`` is the encrypted
    FileMetaData module, or the signature, or empty. ``clear`` is the part before it.  ``scan`` is
    the scan of a FileMetaData in clear.  ``column_names`` are the table's names of columns.
    """

    mode: FooterMode
    offset: int
    clear: bytes
    sealed: bytes
    scan: FooterScan | None
    algorithm: EncryptionAlgorithm | None
    key_metadata: bytes | None
    column_names: ColumnMapping | None = None


def read_tail(file: InputFile, *, end: int | None = None) -> Tail:
    """Find the footer of ``file``.

    Raises FormatError if the file does not end as a Parquet file does. ``end`` is where the footer
    ends: the end of the file, unless an append was cut short.
    """
    tail = _tail(*locate_footer(file, end=end))
    return tail if file.column_names is None else replace(tail, column_names=file.column_names)


def _tail(magic: bytes, offset: int, body: bytes) -> Tail:
    if magic == MAGIC_ENCRYPTED:
        crypto, length = measured_record(FileCryptoMetaData, body)
        return encrypted_tail(offset, body, crypto, length)
    found = scan_footer(body)
    return clear_tail(
        offset,
        body,
        found.length,
        algorithm=found.metadata.encryption_algorithm,
        key_metadata=found.metadata.footer_signing_key_metadata,
        found=found,
    )


def locate_footer(file: InputFile, *, end: int | None = None) -> tuple[bytes, int, bytes]:
    """Return the file's magic, and the offset and bytes of its footer.

    Raises the errors of :func:`read_tail`.
    """
    end = file.size if end is None else end
    # The magic stands at both ends; fewer bytes would let one be taken for the other.
    if end < len(MAGIC) + TRAILER_SIZE:
        raise FormatError(f"not a Parquet file: it has {counted(end, 'byte')}")
    first = min(end, _FIRST_READ)
    last = file.read_at(end - first, first)
    # The magic at the file's start says the same, and reading it would be one more request.
    magic = last[-len(MAGIC) :]
    if magic not in (MAGIC, MAGIC_ENCRYPTED):
        raise _foreign(file, last)
    # Unsigned: a negative length would put the footer behind the end of the file.
    length = int.from_bytes(last[-TRAILER_SIZE : -len(MAGIC)], "little")
    offset = end - TRAILER_SIZE - length
    # The length is any number of four bytes.  A footer cannot start inside the first magic.
    if offset < len(MAGIC):
        raise FormatError(f"the footer's length is {length}, the file has {end} bytes")
    have = first - TRAILER_SIZE
    body = last[have - length : have] if length <= have else file.read_at(offset, length)
    return magic, offset, body


def _foreign(file: InputFile, last: bytes) -> FormatError:
    """Return the error for a file that does not end as Parquet files do."""
    # The first character may be cut.
    text = last[-_LOOKED_AT:].decode("utf-8", "replace").lstrip("\ufffd")
    is_text = "\ufffd" not in text and all(c.isprintable() or c in "\r\n\t" for c in text)
    # A Parquet file that is cut short may end within a text, too.
    if is_text and file.read_at(0, len(MAGIC)) not in (MAGIC, MAGIC_ENCRYPTED):
        return FormatError(
            "not a Parquet file: it ends as a text does, such as CSV or JSON",
            hint="write the table as Parquet; of a folder only Parquet files are taken",
        )
    return FormatError(
        "not a Parquet file, or cut short: it does not end in PAR1 or PARE",
        hint="if a run with --in-place was killed here, the next such run repairs the file",
    )


def encrypted_tail(offset: int, body: bytes, crypto: FileCryptoMetaData, length: int) -> Tail:
    """Return the tail of a file with an encrypted footer, after ``crypto`` of ``length`` bytes."""
    # No tag covers bytes behind the module, so there must be none.
    if cipher.frame_length(body, length) != len(body) - length:
        raise FormatError("the encrypted footer module does not fill the footer's length")
    return Tail(
        mode=FooterMode.ENCRYPTED,
        offset=offset,
        clear=body[:length],
        sealed=body[length:],
        scan=None,
        algorithm=crypto.encryption_algorithm,
        key_metadata=crypto.key_metadata,
    )


def clear_tail(
    offset: int,
    body: bytes,
    length: int,
    *,
    algorithm: EncryptionAlgorithm | None,
    key_metadata: bytes | None,
    found: FooterScan | None = None,
) -> Tail:
    """Return the tail of a file whose FileMetaData, of ``length`` bytes, is in clear.

    An algorithm in it means that a signature follows.  Encryption.md 5.5.
    """
    signature = 0 if algorithm is None else cipher.SIGNATURE_SIZE
    # The length must fit to the byte.  Else one reader could take the bytes between a footer and
    # its trailer for a signature, and another one for nothing.
    if len(body) != length + signature:
        raise FormatError(
            f"the footer takes {length} bytes and a signature of {signature}, "
            f"its length says {len(body)}"
        )
    return Tail(
        mode=FooterMode.PLAINTEXT if algorithm is None else FooterMode.SIGNED,
        offset=offset,
        clear=body[:length],
        sealed=body[length:],
        scan=found,
        algorithm=algorithm,
        key_metadata=key_metadata,
    )
