"""Say how many bytes a file of an Iceberg table's metadata takes when pyiceberg decodes it.

    metadata.json        JSON, maybe packed by gzip; each part becomes an object of pyiceberg
    manifest, list       Avro: "Obj" 1 | header: map of texts | sync (16) | blocks
    block                records | size | content, packed by the codec of the header | sync (16)

The number of a block's records and what its content takes unpacked are claims that cost nothing, so
both are checked here, before pyiceberg decodes anything.  Avro's specification, "Object Container
Files".
"""

from __future__ import annotations

import bz2
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.running.memory_budget import json_size, refuse_beyond

_AVRO: Final = b"Obj\x01"
_GZIP: Final = b"\x1f\x8b"
#: Parquet and Puffin: delete files, whose readers have checks of their own.
_CHECKED_ELSEWHERE: Final = (b"PAR1", b"PFA1")
_SYNC: Final = 16
_PIECE: Final = 1 << 20
#: What pyiceberg makes of a byte of JSON, of a byte of a record, and of a record of one byte.
_JSON_COST, _BYTE_COST, _RECORD_COST = 4, 12, 1536
_WHAT = "a file of the table's metadata"


def check_decoded_size(data: bytes) -> None:
    """Raise MemoryBudgetError for a file of the metadata that takes too much memory decoded.

    Raises FormatError for a damaged Avro file.
    """
    if data.startswith(_AVRO):
        _check_avro(data)
        return
    if data.startswith(_CHECKED_ELSEWHERE):
        return
    if data.startswith(_GZIP):
        text = b"".join(_bounded(_inflated(data, zlib.MAX_WBITS | 16), 2))
    else:
        text = data
    refuse_beyond(_JSON_COST * json_size(text), _WHAT)


def _bounded(pieces: Iterator[bytes], cost: int) -> Iterator[bytes]:
    """Yield the pieces. Raises MemoryBudgetError if they take too much at ``cost`` a byte."""
    size = 0
    for piece in pieces:
        size += len(piece)
        refuse_beyond(cost * size, _WHAT)
        yield piece


def _check_avro(data: bytes) -> None:
    cursor = _AvroValues(data, len(_AVRO))
    header = dict(_header(cursor))
    schema = header.get("avro.schema", b"")
    refuse_beyond(_JSON_COST * json_size(schema), _WHAT)
    _refuse_empty_items(schema)
    codec = header.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in _CODECS:
        raise UnsupportedFeatureError("a file of the table's metadata has an unknown codec of Avro")
    cursor.skip(_SYNC)
    size = 0
    while not cursor.at_end:
        records, content = cursor.number(), cursor.bytes()
        unpacked = sum(map(len, _bounded(_CODECS[codec](content), _BYTE_COST)))
        # A record has a byte at least, unless it has no fields.
        if records > unpacked:
            raise FormatError(f"a block of an Avro file has {records} records in {unpacked} bytes")
        size += _BYTE_COST * unpacked + _RECORD_COST * max(records, 0)
        refuse_beyond(size, _WHAT)
        cursor.skip(_SYNC)


def _header(cursor: _AvroValues) -> Iterator[tuple[str, bytes]]:
    while count := cursor.number():
        if count < 0:
            # A negative number of entries is followed by their size.
            cursor.number()
        for _ in range(abs(count)):
            yield cursor.bytes().decode("utf-8", "replace"), cursor.bytes()


def _refuse_empty_items(schema: bytes) -> None:
    """Raise FormatError for a list whose items take no byte: it has any length."""
    try:
        tree = json.loads(schema)
    except (ValueError, RecursionError):
        raise FormatError("the schema of an Avro file is no JSON") from None
    stack = [tree]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, Mapping):
            stack += part.values()
            if part.get("type") == "array" and _is_empty(part.get("items")):
                raise FormatError("an Avro file has lists of items that take no byte")


def _is_empty(kind: Any, depth: int = 0) -> bool:
    """Return whether a value of this type of Avro may take no byte."""
    if isinstance(kind, str):
        # A name that is not a simple type is a type that was defined before; it may be empty.
        return kind not in _SIMPLE
    if not isinstance(kind, Mapping) or depth > _DEEPEST:
        # A union begins with the number of its branch.
        return not isinstance(kind, list)
    name = kind.get("type")
    if name == "record":
        fields = kind.get("fields")
        parts = fields if isinstance(fields, list) else []
        return all(isinstance(it, Mapping) and _is_empty(it.get("type"), depth + 1) for it in parts)
    if name == "fixed":
        return kind.get("size") == 0
    has_length = isinstance(name, str) and name in _WITH_LENGTH
    return not has_length and _is_empty(name, depth + 1)


_SIMPLE = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string"})
_WITH_LENGTH = frozenset({"array", "map", "enum"})
_DEEPEST = 20


def _inflated(data: bytes, window: int) -> Iterator[bytes]:
    """Yield the text of deflated bytes, member by member, in pieces."""
    while data:
        one = zlib.decompressobj(window)
        try:
            yield one.decompress(data, _PIECE)
            while one.unconsumed_tail:
                yield one.decompress(one.unconsumed_tail, _PIECE)
        except zlib.error:
            raise FormatError("a file of the table's metadata cannot be unpacked") from None
        # gzip reads on where a member ends; raw deflated bytes have one.
        data = one.unused_data if window > zlib.MAX_WBITS else b""


def _unpacked_bz2(data: bytes) -> Iterator[bytes]:
    while data:
        one = bz2.BZ2Decompressor()
        try:
            while not one.eof:
                yield one.decompress(data, _PIECE)
                if one.needs_input:
                    return
                data = b""
        except (OSError, ValueError):
            raise FormatError("a file of the table's metadata cannot be unpacked") from None
        data = one.unused_data


def _unpacked_zstd(data: bytes) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except (pa.ArrowException, OSError):
        raise FormatError("a file of the table's metadata cannot be unpacked") from None


def _unpacked_snappy(data: bytes) -> Iterator[bytes]:
    # The text begins with its size, and the decoder makes a buffer of that size before all else.
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    refuse_beyond(_BYTE_COST * size, _WHAT)
    # Only its length counts.
    yield from (bytes(min(_PIECE, size - at)) for at in range(0, size, _PIECE))


_CODECS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "null": lambda data: iter((data,)),
    "deflate": lambda data: _inflated(data, -zlib.MAX_WBITS),
    "snappy": _unpacked_snappy,
    "zstandard": _unpacked_zstd,
    "bzip2": _unpacked_bz2,
}


class _AvroValues:
    """The values of an Avro file, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def skip(self, count: int) -> bytes:
        """Return the next ``count`` bytes. Raises FormatError if there are fewer."""
        if not 0 <= count <= len(self._data) - self._at:
            raise FormatError("an Avro file of the table's metadata is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        """Return a number of variable length, in which the last bit is the sign."""
        found = shift = 0
        while True:
            (byte,) = self.skip(1)
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            if shift > 63:
                raise FormatError("an Avro file has a number of more than 64 bits")

    def bytes(self) -> bytes:
        """Return bytes that begin with their length."""
        return self.skip(self.number())
