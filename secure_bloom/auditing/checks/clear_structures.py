"""Find what structures in clear hold that the format does not need, and list all texts in them.

The structures are the footer, the structure before an encrypted footer, and key material. For
columns in clear, the headers of filters and pages and the page indexes are included. Fields that
the format does not have are a finding whatever they hold. With ``check_values`` all texts are
searched for values of sensitive columns, see :mod:`.traced_values`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from secure_bloom.auditing.checks.subjects import ChunkSubject, FileSubject, Findings, FooterSubject
from secure_bloom.auditing.checks.writer_schemas import texts_inside
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_FIELDS
from secure_bloom.bloom.stored import HEADER_LIMIT, filter_extent
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.file_keys.material import (
    ExternalReference,
    KeyMaterial,
    count_unknown_fields,
)
from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.parquet.dictionary_pages import read_headers
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.key_material_files import (
    key_material_name,
    outside_material,
)
from secure_bloom.parquet.page_index import column_index_extent, offset_index_extent
from secure_bloom.parquet.structures.format_fields import (
    TYPES,
    FieldContent,
    contents,
)
from secure_bloom.parquet.structures.wire_fields import (
    Field,
    WireType,
    elements,
    field_header,
    number,
)
from secure_bloom.reports.text import counted
from secure_bloom.storage import InputFile

#: The fields that hold key material.
_KEY_METADATA: Final = frozenset(
    {("FileMetaData", 9), ("FileCryptoMetaData", 2), ("EncryptionWithColumnKey", 2)}
)
#: The fields that hold smallest and largest values.
_BOUNDS: Final = frozenset(
    {("Statistics", 1), ("Statistics", 2), ("Statistics", 5), ("Statistics", 6)}
    | {("ColumnIndex", 2), ("ColumnIndex", 3)}
)
_INTEGERS: Final = frozenset({WireType.BYTE, WireType.I16, WireType.I32, WireType.I64})
_LISTS: Final = frozenset({WireType.LIST, WireType.SET})
#: What parquet-java and pyarrow write if nothing is configured, an address, and a name of a KMS.
_KMS_URL: Final = re.compile(
    r"DEFAULT|[A-Za-z][A-Za-z0-9+.-]*:[^\s@]*|[\w.-]+(?::\d+)?(?:/[^\s@]*)?"
)
_KMS_ID: Final = re.compile(r"[\w.:/+=-]*")


def check_part_in_clear(subject: FileSubject) -> Findings:
    """Check the part of the footer that anyone can read, and the key material beside the file."""
    if not subject.request.has_secrets:
        return
    where = "the part of the footer that anyone can read"
    yield from _check_structure(subject, _part_in_clear(subject), subject.tail.clear, where)


def check_sealed_part(subject: FooterSubject) -> Findings:
    """Check an encrypted footer, because readers with its key may lack the keys of columns."""
    if subject.of.is_readable or not subject.of.request.has_secrets:
        return
    plain = subject.footer.plain
    yield from _check_structure(subject.of, "FileMetaData", plain, "the encrypted footer")


def check_headers(subject: ChunkSubject) -> Findings:
    """Check the header of a filter in clear, and with ``check_values`` page headers and indexes."""
    chunk = subject.chunk
    if chunk is None or subject.is_encrypted or not subject.of.request.has_secrets:
        return
    check_values = subject.of.request.check_values
    # Most columns in clear have no filter.
    if chunk.meta_data.bloom_filter_offset is None and not check_values:
        return
    found = list(_filter_header(subject.of.file, chunk))
    if check_values:
        found += _page_structures(subject.of.file, chunk)
    if count := sum(not it.is_known for it in found):
        what = f"headers or page indexes of the column have {counted(count, 'unknown field')}"
        yield subject.finding(UNCHECKED_FIELDS, what)


def _part_in_clear(subject: FileSubject) -> str:
    is_sealed = subject.tail.mode is FooterMode.ENCRYPTED
    return "FileCryptoMetaData" if is_sealed else "FileMetaData"


def _unknown(subject: FileSubject, found: Iterable[FieldContent], where: str) -> Findings:
    unknown = [it for it in found if not it.is_known]
    if unknown:
        # Ids and names of structures are the format's, what the fields hold may be a value.
        named = ", ".join(sorted({f"{it.structure}.{it.field}" for it in unknown})[:5])
        what = (
            f"{where} has {counted(len(unknown), 'field')} that the format does not have: {named}"
        )
        yield subject.finding(UNCHECKED_FIELDS, what)


def _check_structure(subject: FileSubject, structure: str, buffer: bytes, where: str) -> Findings:
    record = subject.known_fields(structure, buffer)
    if record is not None:
        yield from _check_material(subject, _key_metadata(structure, record))
        return
    found = contents(structure, buffer)
    yield from _unknown(subject, found, where)
    keys = (it for it in found if (it.structure, it.field) in _KEY_METADATA and it.is_known)
    yield from _check_material(subject, (it.value for it in keys))


def _key_metadata(structure: str, record: Any) -> Iterator[bytes | None]:
    """Yield the fields of :data:`_KEY_METADATA`."""
    if structure == "FileCryptoMetaData":
        yield record.key_metadata
        return
    yield record.footer_signing_key_metadata
    for group in record.row_groups:
        for column in group.columns:
            crypto = column.crypto_metadata
            if crypto is not None and crypto.ENCRYPTION_WITH_COLUMN_KEY is not None:
                yield crypto.ENCRYPTION_WITH_COLUMN_KEY.key_metadata


def _check_material(subject: FileSubject, key_metadata: Iterable[bytes | None]) -> Findings:
    texts = [it for it in dict.fromkeys(key_metadata) if it is not None]
    yield from _check_material_texts(subject, texts, "the key material in the footer")
    referenced = set()
    for text in texts:
        with suppress(SecureBloomError):
            parsed = subject.keys.parsed(text)
            if isinstance(parsed, ExternalReference):
                referenced.add(parsed.key_reference)
    if referenced:
        outside: dict[str, bytes] = {}
        with suppress(SecureBloomError):
            outside = {k: v.encode() for k, v in outside_material(subject.file).items()}
        others = [it for name, it in outside.items() if name not in referenced]
        name = key_material_name(subject.file.name)
        yield from _check_material_texts(subject, outside.values(), name, unused=others)


def _check_material_texts(
    subject: FileSubject, texts: Iterable[bytes], where: str, unused: Collection[bytes] = ()
) -> Findings:
    unknown, odd = 0, False
    for text in dict.fromkeys(texts):
        # Damaged key material is a finding of its own.
        with suppress(SecureBloomError):
            unknown += count_unknown_fields(text)
            material = subject.keys.parsed(text)
            # A file of key material holds nothing else.
            unknown += material is None and text in unused
            odd = odd or (isinstance(material, KeyMaterial) and _names_no_kms(material))
    if unknown:
        what = f"{where} has {counted(unknown, 'field')} that no reader knows"
        yield subject.finding(UNCHECKED_FIELDS, what)
    if odd:
        what = (
            f"{where} has a kmsInstanceURL that is no address, or a kmsInstanceID that is no name"
        )
        yield subject.finding(UNCHECKED_FIELDS, what)


def _names_no_kms(material: KeyMaterial) -> bool:
    url, name = material.kms_instance_url or "", material.kms_instance_id or ""
    return not (_KMS_ID.fullmatch(name) and (not url or _KMS_URL.fullmatch(url)))


def footer_texts(subject: FooterSubject) -> list[bytes]:
    """Return all texts of the footer, each once. Bounds of columns are left out."""
    # parquet-java pads what it encrypts; other bytes after the structure may be a text.
    padding = subject.footer.scan.plain[subject.footer.scan.length :]
    names = [part for leaf in subject.footer.leaves for part in leaf.path]
    found = contents("FileMetaData", subject.footer.plain)
    return _distinct([*_texts(found), *map(_encoded, names), bytes(padding)])


def open_texts(subject: FooterSubject) -> list[bytes]:
    """Return the texts that anyone can read of an encrypted footer, and of key material outside."""
    of = subject.of
    found = [] if of.is_readable else contents(_part_in_clear(of), of.tail.clear)
    outside = of.file.read_sibling(key_material_name(of.file.name))
    return _distinct([*_texts(found), outside or b""])


def chunk_texts(file: InputFile, chunk: Chunk) -> tuple[list[bytes], list[bytes]]:
    """Return the texts in the headers and indexes of a chunk in clear, and the bounds in them."""
    found = [*_filter_header(file, chunk), *_page_structures(file, chunk)]
    bounds = [it.value for it in found if (it.structure, it.field) in _BOUNDS and it.is_known]
    return _distinct(_texts(found)), list(dict.fromkeys(bounds))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _distinct(texts: Iterable[bytes]) -> list[bytes]:
    """Return each text once. Add the strings inside of texts that are schemas or other JSON."""
    return list(dict.fromkeys(part for text in texts for part in (text, *texts_inside(text))))


def _filter_header(file: InputFile, chunk: Chunk) -> Iterator[FieldContent]:
    # What cannot be read is a finding of another check, here and below.
    with suppress(SecureBloomError):
        extent = filter_extent(file, chunk)
        if extent is not None:
            offset, length = extent
            yield from contents(
                "BloomFilterHeader", file.read_at(offset, min(length, HEADER_LIMIT))
            )


def _page_structures(file: InputFile, chunk: Chunk) -> Iterator[FieldContent]:
    for structure, extent in (
        ("ColumnIndex", column_index_extent(chunk, file.size)),
        ("OffsetIndex", offset_index_extent(chunk, file.size)),
    ):
        with suppress(SecureBloomError):
            yield from [] if extent is None else contents(structure, file.read_at(*extent))
    before = None
    with suppress(SecureBloomError):
        for page in read_headers(file, chunk):
            # A page that repeats is one object.
            if page is not before:
                yield from contents("PageHeader", page.encoded_header)
            before = page


def _texts(found: Iterable[FieldContent]) -> Iterator[bytes]:
    """Yield the texts in fields. A list of numbers may be the letters of a text."""
    doubles: list[bytes] = []
    for it in found:
        if it.structure == "BoundingBox" and it.is_known:
            doubles.append(it.value)
            yield repr(struct.unpack("<d", it.value)[0]).encode()
        elif (it.structure, it.field) not in _BOUNDS or not it.is_known:
            yield it.value
            with suppress(FormatError, IndexError, KeyError):
                yield from _of_numbers(_numbers(it), is_known=it.is_known)
    yield b"".join(doubles)


def _numbers(content: FieldContent) -> list[int]:
    """Return the integers of a field."""
    value, end = content.value, len(content.value)
    if not content.is_known:
        start = field_header(value, 0, value[0], 0)[1]
        field = Field(value[0] & 0x0F, 0, start, end)
    elif TYPES[content.structure][content.field].startswith("list<i"):
        field = Field(WireType.LIST, 0, 0, end)
    else:
        return []
    if field.type in _LISTS:
        return [_integer(value, it) for it in elements(value, field) if it.type in _INTEGERS]
    return [_integer(value, field)] if field.type in _INTEGERS else []


def _integer(buffer: bytes, field: Field) -> int:
    return buffer[field.value] if field.type == WireType.BYTE else number(buffer, field)


def _of_numbers(numbers: list[int], *, is_known: bool) -> Iterator[bytes]:
    if not numbers:
        return
    if not is_known:
        yield b"\n".join(str(it).encode() for it in numbers)
    yield "".join(chr(it) for it in numbers if 0 < it <= 0x10FFFF).encode("utf-8", "replace")
    for order in ("little", "big"):
        yield b"".join((it & _ALL_BITS).to_bytes(8, order).strip(b"\0") for it in numbers)


_ALL_BITS: Final = (1 << 64) - 1
