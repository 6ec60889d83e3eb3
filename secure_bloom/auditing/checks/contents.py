"""Recognize the content of a file of any name: Parquet, pages in clear (also packed), or keys."""

from __future__ import annotations

import base64
import codecs
import enum
import io
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator

from secure_bloom.auditing.checks.filter_search import has_plain_page
from secure_bloom.encryption.cipher import KEY_SIZES
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, TRAILER_SIZE, read_tail
from secure_bloom.storage import InputFile
from secure_bloom.tracing.packed import Budget, UnreadError, decompressed, kind_of

#: The first bytes of a file that are searched, and the most that they are unpacked to.
_SEARCHED, _MOST_UNPACKED = 4 * 1024 * 1024, 1024 * 1024
#: How often a packed file is unpacked, and the most bytes that all members of an archive take.
_DEEPEST, _MOST_OF_ALL = 3, 64 * 1024 * 1024
#: An archive of more bytes than this is not unpacked.
_LARGEST_ARCHIVE = 64 * 1024 * 1024
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_KEYS = re.compile(
    # A keyring. The keys of "explicit" are in one more object.
    rb'"(?:master_keys|data_keys|explicit)"\s*:\s*\{(?P<keyring>(?:[^{}"]|'
    + _STRING
    + rb'|\{(?:[^{}"]|'
    + _STRING
    + rb")*+\})*+)"
    rb"|parquet\.encryption\.key\.list\W+\w(?P<list>[^\r\n]*:[^\r\n]*)"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    # Credentials, with which a KMS gives its keys: of Vault, of AWS, and of any KMS of Spark.
    # A look back comes last, because a search for first letters is faster.
    rb"|hv[sbr]\.(?<!\w....)[\w-]{24,}"
    rb"|[sbr]\.(?<![\w.]..)(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{24}(?![\w.(-])"
    rb"|(?:VAULT_TOKEN|BAO_TOKEN|[Xx]-[Vv]ault-[Tt]oken)\W{1,5}[\w.-]{20,}"
    # AWS calls another thing so.
    rb"|client_token\W{1,5}[sbr]\.[A-Za-z0-9]{24}"
    rb"|(?:SECRET_ID|secret_id)\W{1,5}[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    rb"|(?i:aws_secret_access_key)\W{1,4}[A-Za-z0-9/+=]{40}"
    rb"|parquet\.encryption\.key\.access\.token[\s=:\"',]+(?!DEFAULT\b)\w"
)
#: What may be keys in these -> each text that may be one. An example has words in their place.
_TEXTS = {
    "keyring": re.compile(_STRING + rb'\s*:\s*"([^"]*)'),
    "list": re.compile(rb":\s*([\w+/=-]+)"),
}
#: The beginnings of keystores: of Java (JKS, JCEKS), and PKCS #12 (RFC 7292, version 3).
_KEYSTORE = re.compile(
    rb"\xfe\xed\xfe\xed\x00\x00\x00|\xce\xce\xce\xce\x00\x00\x00|\x30\x82..\x02\x01\x03\x30",
    re.DOTALL,
)
#: The first bytes of archives that are not unpacked: RAR, lzip, lzop.
_NOT_UNPACKED = (b"Rar!\x1a\x07", b"LZIP", b"\x89LZO\x00")


class Content(enum.Enum):
    """The kinds of files that an audit distinguishes."""

    FOOTER = "ends with the footer of a Parquet file"
    PAGES = "has pages of a Parquet file in clear, and no footer"
    KEYS = "holds keys"
    PACKED = "is packed, and cannot be unpacked here"
    OTHER = "anything else"


def content_of(file: InputFile, keys: Collection[bytes] = ()) -> Content:
    """Return the kind of a file.

    ``keys`` are master keys as :func:`forms_of` spells them: a file that has one of them is a
    file of keys.
    """
    if _ends_with_footer(file):
        return Content.FOOTER
    head = file.read_at(0, min(file.size, _SEARCHED))
    found = Content.OTHER
    try:
        for part in _Unpacker(file).parts(head):
            if has_plain_page(part):
                return Content.PAGES
            if holds_keys(part, keys) or _KEYSTORE.match(part):
                found = Content.KEYS
    except UnreadError:
        return Content.PACKED if found is Content.OTHER else found
    return found


def begins_with_pages(file: InputFile) -> bool:
    """Return whether the searched first bytes contain pages in clear."""
    return has_plain_page(file.read_at(0, min(file.size, _SEARCHED)))


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

    Credentials for a KMS count too.  ``keys`` come from :func:`forms_of`.
    """
    return any(map(_is_of_keys, _KEYS.finditer(content))) or any(key in content for key in keys)


def _is_of_keys(found: re.Match[bytes]) -> bool:
    kind = found.lastgroup
    if kind is None:
        return True
    # JSON and properties escape some characters of Base64.
    texts = _TEXTS[kind].findall(found[kind].replace(b"\\", b""))
    return any(map(_is_key, texts))


def _is_key(text: bytes) -> bool:
    """Return whether a text is Base64 of as many bytes as a key of AES has."""
    text = text.rstrip(b"=").translate(_FROM_URLS)
    # Python ends at padding inside a text.
    if b"=" in text:
        return False
    try:
        return len(base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)) in KEY_SIZES
    except ValueError:
        return False


_FROM_URLS = bytes.maketrans(b"-_", b"+/")


def forms_of(keys: Collection[bytes]) -> tuple[bytes, ...]:
    """Return the forms in which a text or a program may hold keys.

    These are raw bytes, Base64, and hexadecimal, also as ``aa:bb`` and ``0xaa, 0xbb``.
    """
    found: dict[bytes, None] = {}
    for key in keys:
        spelled = (base64.b64encode(key), base64.urlsafe_b64encode(key))
        found |= dict.fromkeys([key, *(it.rstrip(b"=") for it in spelled)])
        for pairs in (key.hex(":"), key.hex(":").upper()):
            texts = [pairs.replace(":", mark) for mark in ("", ":", " ", ",0x", ", 0x")]
            found |= dict.fromkeys(text.encode() for text in texts)
    return tuple(found)


class _Unpacker:
    """Unpacks archives in one file. Limits the bytes of all archives inside it together."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._budget = Budget(0, _MOST_OF_ALL, 0)

    def parts(self, head: bytes, depth: int = _DEEPEST) -> Iterator[bytes]:
        """Yield the first bytes of a file or member, and of everything packed in it.

        Raises UnreadError for what is packed and cannot be unpacked here.
        """
        yield head
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            yield head.decode("utf-16", "replace").encode("utf-8", "replace")
        if depth == 0:
            return
        if head.startswith(_NOT_UNPACKED):
            raise UnreadError("an archive that is not unpacked")
        for packed in self._packed(head, is_whole_file=depth == _DEEPEST):
            yield from self.parts(packed, depth - 1)

    def _packed(self, head: bytes, *, is_whole_file: bool) -> Iterator[bytes]:
        kind = kind_of(head)
        if head.startswith(b"PK\3\4"):
            if is_whole_file and self._file.size > _LARGEST_ARCHIVE:
                raise UnreadError("an archive that is too large")
            yield from self._members(self._file.all_bytes() if is_whole_file else head)
        elif head.startswith(_SEVEN_ZIP):
            if is_whole_file and self._file.size > _LARGEST_ARCHIVE:
                raise UnreadError("an archive that is too large")
            yield from self._members_of_7z(self._file.all_bytes() if is_whole_file else head)
        elif head.startswith(_PARQUET_IN_BASE64):
            text = b"".join(head.split())
            yield base64.b64decode(text[: len(text) // 4 * 4])[:_MOST_UNPACKED]
        # Other files begin with the two bytes of zlib by chance.
        elif kind is not None and kind != "zlib":
            yield self._unpacked(head, kind)

    def _unpacked(self, head: bytes, kind: str) -> bytes:
        unpacked = b""
        try:
            for piece in decompressed(io.BytesIO(head), kind, self._budget):
                unpacked += piece
                if len(unpacked) >= _MOST_UNPACKED:
                    break
        except UnreadError:
            # The head is cut where a file is long.
            if not unpacked:
                raise
        return unpacked

    def _members(self, data: bytes) -> Iterator[bytes]:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for info in archive.infolist():
                    if info.flag_bits & _WITH_PASSWORD:
                        raise UnreadError("a zip archive with a password")
                    with archive.open(info) as member:
                        content = member.read(_MOST_UNPACKED)
                    self._budget.take(max(len(content), _LEAST_OF_MEMBER))
                    yield content
        except NotImplementedError:
            raise UnreadError("a member that is packed in an unknown way") from None
        # Nobody unpacks what is damaged.
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, RuntimeError, zlib.error):
            return

    def _members_of_7z(self, data: bytes) -> Iterator[bytes]:
        # Imported here: no other file needs pyarrow.
        from secure_bloom.tracing.containers import seven_zip_content
        from secure_bloom.tracing.content import Opened, Stream

        opened = Opened(self._budget)
        for content in seven_zip_content(io.BytesIO(data), opened, ""):
            if isinstance(content, Stream):
                self._budget.take(_LEAST_OF_MEMBER)
                yield b"".join(content.pieces)[:_MOST_UNPACKED]


#: What a member counts at least: archives may have millions of empty ones.
_LEAST_OF_MEMBER = 1024
#: The bit of a member's flags that says that it is encrypted (APPNOTE.TXT 4.4.4).
_WITH_PASSWORD = 1
#: The first bytes of a 7z archive.
_SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
#: The magic bytes of Parquet in Base64.
_PARQUET_IN_BASE64 = b"UEFSM"
