"""Read and write Avro object container files, whose records may be hostile.

    "Obj" 1 | metadata: a map with avro.schema and avro.codec | 16 bytes of synchronization
    blocks: how many records (long) | how many bytes (long) | the records, compressed | 16 bytes

Avro 1.12, "Object Container Files".  fastavro decodes the records of a block.  The bytes of all
blocks are counted before they are decompressed, and a schema whose values may take no bytes is
refused: a short file could claim any number of them.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from secure_bloom.errors import FormatError, UnsupportedFeatureError, imported_for
from secure_bloom.running.memory_budget import MemoryShare, memory_budget, refuse_beyond

MAGIC: Final = b"Obj\x01"
_SYNC_BYTES = 16
_LONGEST_NUMBER = 10
#: A decoded record takes many times the bytes of its encoding: objects of Python.
_DECODED: Final = 8
#: Schemas are not nested so deeply; a hostile one would exhaust the stack.
_DEEPEST = 32
#: Values of these types take at least one byte.
_SIZED: Final = frozenset(
    {"boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum"}
)
PURPOSE: Final = "reading the manifests of a Paimon table"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFile:
    """The schema of a file, and its records in their order."""

    schema: Any
    records: tuple[dict[str, Any], ...]


def decoding_room() -> MemoryShare:
    """Return the room for the encoded records of several files, by the memory budget."""
    return MemoryShare(memory_budget() // _DECODED)


def decode(content: bytes, room: MemoryShare) -> AvroFile:
    """Return the records of a container file. Their encoded size is taken from ``room``.

    Logical types are left out: a time stays a number, as the file has it.

    Raises FormatError for damaged bytes, UnsupportedFeatureError for a codec or a schema that is
    not read here, and MemoryBudgetError for more records than there is room for.
    """
    cursor = _AvroCursor(content)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise FormatError("not an Avro file: it does not begin with Obj and 1")
    metadata = cursor.metadata()
    sync = cursor.take(_SYNC_BYTES)
    schema = _schema(metadata)
    codec = metadata.get("avro.codec", b"null").decode("ascii", "replace")
    if codec not in _DECOMPRESS:
        raise UnsupportedFeatureError(
            f"an Avro file is compressed with {codec!r}, wanted one of {', '.join(_DECOMPRESS)}"
        )
    records: list[dict[str, Any]] = []
    read = _reader(_without_logical_types(schema))
    while cursor.left:
        count, size = cursor.long(), cursor.long()
        data = _DECOMPRESS[codec](cursor.take(size), room.most - room.used)
        if not room.take(len(data)):
            refuse_beyond(memory_budget() + 1, "the metadata of the table")
        if cursor.take(_SYNC_BYTES) != sync:
            raise FormatError("a block of an Avro file does not end with the file's own mark")
        records += _records(read, data, count)
    return AvroFile(schema=schema, records=tuple(records))


def encode(schema: Any, records: Sequence[dict[str, Any]]) -> bytes:
    """Return a container file with these records, compressed with deflate.

    Every reader of Avro has this codec (Avro 1.12, "Required Codecs").
    """
    with imported_for(PURPOSE, "paimon"):
        import fastavro
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec="deflate")
    return out.getvalue()


def _schema(metadata: dict[str, bytes]) -> Any:
    try:
        schema = json.loads(metadata["avro.schema"])
    except KeyError:
        raise FormatError("an Avro file has no schema") from None
    except (ValueError, RecursionError):
        raise FormatError("the schema of an Avro file is not JSON") from None
    _check_sized(schema, set(), _DEEPEST)
    return schema


def _check_sized(schema: Any, named: set[str], depth: int) -> None:
    """Raise UnsupportedFeatureError for a schema whose records or items may take no bytes.

    ``named`` are the named types that were checked before.  A type that holds itself is not yet
    among them, and is refused: its values could be nested to any depth.
    """
    if depth == 0:
        raise UnsupportedFeatureError(f"an Avro schema is nested deeper than {_DEEPEST} levels")
    for part in _parts(schema, named):
        _check_sized(part, named, depth - 1)
    if isinstance(schema, dict) and isinstance(schema.get("name"), str):
        named.add(schema["name"])


def _parts(schema: Any, named: set[str]) -> list[Any]:
    """Return the schemas inside a schema."""
    if isinstance(schema, list):
        # A union writes which branch it has, so its null takes a byte.
        return [branch for branch in schema if branch != "null"]
    kind = schema.get("type") if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return [kind]
    if kind == "record" and isinstance(fields := schema.get("fields"), list) and fields:
        return [each.get("type") if isinstance(each, dict) else None for each in fields]
    if kind in ("array", "map"):
        return [schema.get("items" if kind == "array" else "values")]
    is_sized = isinstance(kind, str) and (kind in _SIZED or kind in named)
    if not is_sized or (kind == "fixed" and schema.get("size") == 0):
        raise UnsupportedFeatureError("an Avro schema has a type that is not read here")
    return []


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_logical_types(value) if isinstance(value, dict | list) else value
        for key, value in schema.items()
        if key not in ("logicalType", "default")
    }


_Reader: TypeAlias = Callable[[io.BytesIO], Any]


def _reader(schema: Any) -> _Reader:
    """Return the function that reads one record."""
    with imported_for(PURPOSE, "paimon"):
        import fastavro
    try:
        parsed = fastavro.parse_schema(schema)
    except Exception as exc:
        raise FormatError("the schema of an Avro file is not one") from exc
    return lambda stream: fastavro.schemaless_reader(stream, parsed, None)


def _records(read: _Reader, data: bytes, count: int) -> Iterator[dict[str, Any]]:
    stream = io.BytesIO(data)
    if not 0 <= count <= len(data):
        raise FormatError(f"a block of an Avro file has {count} records in {len(data)} bytes")
    for _ in range(count):
        try:
            record = read(stream)
        except Exception as exc:
            # Without the text, which may quote bounds of columns.
            raise FormatError("a record of an Avro file is damaged") from exc
        if not isinstance(record, dict):
            raise FormatError("an Avro file has a record without fields")
        yield record
    if stream.tell() != len(data):
        raise FormatError(f"{len(data) - stream.tell()} bytes follow the records of a block")


def _inflate(data: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, most + 1)
    except zlib.error as exc:
        raise FormatError("a block of an Avro file cannot be decompressed") from exc


def _decompress_zstandard(data: bytes, most: int) -> bytes:
    import pyarrow as pa

    try:
        # As a stream: the size that a frame claims is never allocated.
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            return bytes(stream.read(most + 1))
    except (pa.ArrowException, OSError) as exc:
        raise FormatError("a block of an Avro file cannot be decompressed") from exc


def _decompress_snappy(data: bytes, most: int) -> bytes:
    import pyarrow as pa

    # The content is followed by its checksum (CRC-32, big-endian).
    body, checksum = data[:-4], data[-4:]
    size, _ = _varint(body)
    if size > most:
        refuse_beyond(memory_budget() + size, "a block of an Avro file")
    try:
        found = bytes(pa.decompress(body, size, codec="snappy", asbytes=True))
    except (pa.ArrowException, OSError) as exc:
        raise FormatError("a block of an Avro file cannot be decompressed") from exc
    if zlib.crc32(found).to_bytes(4, "big") != checksum:
        raise FormatError("the checksum of a block of an Avro file is wrong")
    return found


def _varint(data: bytes) -> tuple[int, int]:
    """Return the unsigned number at the start of ``data``, seven bits a byte, and its length."""
    found = 0
    for position, byte in enumerate(data[:_LONGEST_NUMBER]):
        found |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return found, position + 1
    raise FormatError("a number of an Avro file does not end")


_DECOMPRESS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "null": lambda data, _: data,
    "deflate": _inflate,
    "zstandard": _decompress_zstandard,
    "snappy": _decompress_snappy,
}


class _AvroCursor:
    """The bytes of a container file, read one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises FormatError if there are too few."""
        if not 0 <= size <= self.left:
            raise FormatError(f"an Avro file wants {size} bytes, {self.left} are left")
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]

    def long(self) -> int:
        """Return the next number, in zigzag encoding."""
        found, length = _varint(self._data[self._at : self._at + _LONGEST_NUMBER])
        self._at += length
        return (found >> 1) ^ -(found & 1)

    def metadata(self) -> dict[str, bytes]:
        """Return the map of the header."""
        found: dict[str, bytes] = {}
        while count := self.long():
            if count < 0:
                # A negative count is followed by the size of the block.
                count, _ = -count, self.long()
            for _ in range(count):
                key = self.take(self.long()).decode("utf-8", "replace")
                found[key] = self.take(self.long())
        return found
