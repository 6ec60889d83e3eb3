"""Walk an Avro object container file block by block, each unpacked within a bound.

    "Obj" 1 | metadata: a map with avro.schema and avro.codec | 16 bytes of synchronization
    blocks: how many records (long) | how many bytes (long) | the records, compressed | 16 bytes

Avro 1.12, "Object Container Files".

    blocks = AvroBlocks(file, count)            reads the header; blocks.schema is the parsed schema
    for records, content in blocks:             count(size) is called for each piece unpacked

A hostile file can claim any number of records in a block, and any unpacked size, at no cost. So
``count`` raises an error if all blocks together have too many bytes. A single block must fit into
the memory budget, and have no more records than bytes.

The memory that values of a schema take when they are decoded to Python objects:

    cost = AvroCost.of(schema)            refuses a schema whose values have no bound
    cost.most(records, size)              an upper bound for records of ``size`` encoded bytes
    cost.of_lists(record)                 the lists of a decoded record, in addition to cost.fixed

One encoded byte can become a Python dictionary. The schema alone determines the memory of a record
without its lists. The items of lists are counted in each decoded record.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final, TypeVar

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.running.memory_budget import refuse_beyond

MAGIC: Final = b"Obj\x01"
#: Counts bytes that come into memory. Raises an error for too many.
Count = Callable[[int], object]
_SYNC: Final = 16
_PIECE: Final = 1 << 20
_LONGEST_NUMBER: Final = 10
#: The memory that a dictionary of xz may take.
_MOST_DICTIONARY: Final = 64 << 20
#: A table may have thousands of manifests, with a few schemas of some kilobytes.
_KEPT_SCHEMAS, _MOST_KEPT = 8, 1 << 16
A = TypeVar("A")


class AvroBlocks:
    """The blocks of one file: the number of records and the unpacked content of each."""

    def __init__(self, file: BinaryIO, count: Count) -> None:
        self._file, self._count = file, count
        self._left = file.seek(0, io.SEEK_END)
        file.seek(0)
        if self._take(len(MAGIC)) != MAGIC:
            raise FormatError("not an Avro file: it does not begin with Obj and 1")
        header = self._header()
        if "avro.schema" not in header:
            raise FormatError("an Avro file has no schema")
        #: The schema as the file has it; files of one text share ``schema`` and ``cost``.
        self.schema_text = header["avro.schema"]
        self.schema, self.cost = schema_of(self.schema_text)
        codec = header.get("avro.codec", b"null").decode("ascii", "replace")
        if codec not in _UNPACK:
            raise UnsupportedFeatureError(
                f"an Avro file is compressed with {codec!r}, wanted one of {', '.join(_UNPACK)}"
            )
        self._unpack = _UNPACK[codec]
        self._mark = self._take(_SYNC)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks. Raises FormatError for damage, and what ``count`` raises."""
        while self._left:
            records, size = self._long(), self._long()
            content = self._unpacked(self._take(size))
            if self._take(_SYNC) != self._mark:
                raise FormatError("a block of an Avro file does not end with the file's own mark")
            # A record has a byte at least, unless it has no fields.
            if not 0 <= records <= len(content):
                raise FormatError(
                    f"a block of an Avro file has {records} records in {len(content)} bytes"
                )
            yield records, content

    def _unpacked(self, packed: bytes) -> bytes:
        import pyarrow as pa

        size = 0

        def count(more: int) -> None:
            nonlocal size
            size += more
            refuse_beyond(2 * size, "a block of an Avro file")
            self._count(more)

        try:
            return b"".join(self._unpack(packed, count))
        except (pa.ArrowException, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
            # Without the cause, whose text may quote the content.
            raise FormatError("a block of an Avro file cannot be unpacked") from None

    def _take(self, size: int) -> bytes:
        """Return the next bytes. Raises FormatError if there are too few."""
        if not 0 <= size <= self._left:
            raise FormatError(f"an Avro file wants {size} bytes, {self._left} are left")
        refuse_beyond(2 * size, "a part of an Avro file")
        found = self._file.read(size)
        if len(found) != size:
            raise FormatError("an Avro file became shorter while it was read")
        self._left -= size
        return found

    def _long(self) -> int:
        """Return the next number, in zigzag encoding."""
        data = b""
        while not data or data[-1] & 0x80:
            if len(data) == _LONGEST_NUMBER:
                raise FormatError("a number of an Avro file does not end")
            data += self._take(1)
        found, _ = _varint(data)
        return (found >> 1) ^ -(found & 1)

    def _header(self) -> dict[str, bytes]:
        """Return the map of the header."""
        found: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:
                # A negative count is followed by the size of the entries.
                count, _ = -count, self._long()
            for _ in range(count):
                key = self._take(self._long()).decode("utf-8", "replace")
                found[key] = self._take(self._long())
        return found


def kept_by_text(read: Callable[[bytes], A]) -> Callable[[bytes], A]:
    """Return ``read`` with a cache of the results for the last few texts. Skip long texts."""
    kept = lru_cache(maxsize=_KEPT_SCHEMAS)(read)
    return lambda text: kept(text) if len(text) <= _MOST_KEPT else read(text)


@kept_by_text
def schema_of(text: bytes) -> tuple[Any, AvroCost]:
    """Return the parsed schema in ``text``, and its cost. Both are cached: do not change them."""
    try:
        schema = parsed_json(text, "the schema of an Avro file")
    except (ValueError, RecursionError):
        raise FormatError("the schema of an Avro file is not JSON") from None
    return schema, AvroCost.of(schema)


def _varint(data: bytes) -> tuple[int, int]:
    """Return the unsigned number at the start of ``data``, seven bits a byte, and its length."""
    found = 0
    for position, byte in enumerate(data[:_LONGEST_NUMBER]):
        found |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return found, position + 1
    raise FormatError("a number of an Avro file does not end")


def _inflate(data: bytes, count: Count) -> Iterator[bytes]:
    one = zlib.decompressobj(-zlib.MAX_WBITS)
    while piece := one.decompress(data, _PIECE):
        count(len(piece))
        yield piece
        data = one.unconsumed_tail


def _by_object(new: Callable[[], Any]) -> Callable[[bytes, Count], Iterator[bytes]]:
    def unpack(data: bytes, count: Count) -> Iterator[bytes]:
        one = new()
        while not one.eof:
            piece = one.decompress(data, _PIECE)
            data = b""
            count(len(piece))
            yield piece
            if one.needs_input:
                raise EOFError

    return unpack


def _unpack_zstandard(data: bytes, count: Count) -> Iterator[bytes]:
    import pyarrow as pa

    # As a stream: the size that a frame claims is never allocated.
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while piece := bytes(stream.read(_PIECE)):
            count(len(piece))
            yield piece


def _unpack_snappy(data: bytes, count: Count) -> Iterator[bytes]:
    import pyarrow as pa

    # The content is followed by its checksum (CRC-32, big-endian).
    body, checksum = data[:-4], data[-4:]
    size, _ = _varint(body)
    count(size)
    found = bytes(pa.decompress(body, size, codec="snappy", asbytes=True))
    if zlib.crc32(found).to_bytes(4, "big") != checksum:
        raise FormatError("the checksum of a block of an Avro file is wrong")
    yield found


def _unpack_lz4(data: bytes, count: Count) -> Iterator[bytes]:
    import pyarrow as pa

    # The content follows its unpacked size, little-endian.
    size = int.from_bytes(data[:4], "little")
    count(size)
    yield bytes(pa.decompress(data[4:], size, codec="lz4_raw", asbytes=True))


def _stored(data: bytes, count: Count) -> Iterator[bytes]:
    count(len(data))
    yield data


_UNPACK: Final[Mapping[str, Callable[[bytes, Count], Iterator[bytes]]]] = {
    "null": _stored,
    "deflate": _inflate,
    "zstandard": _unpack_zstandard,
    "snappy": _unpack_snappy,
    "bzip2": _by_object(bz2.BZ2Decompressor),
    "xz": _by_object(lambda: lzma.LZMADecompressor(memlimit=_MOST_DICTIONARY)),
    "lz4": _unpack_lz4,
}


#: Schemas are not nested so deeply; a hostile one would exhaust the stack.
_DEEPEST: Final = 32
#: What a dictionary or list takes, a member of it, a number or the frame of a text, a byte of it.
_CONTAINER, _MEMBER, _LEAF, _BYTE = 240, 40, 64, 4
#: The fewest bytes of simple types.
_LEAST: Final = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
    "enum": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists:
    """Lists at one path of records, and the memory that each item takes."""

    path: tuple[str, ...]
    item: AvroCost


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroCost:
    """The memory that a decoded value of one type takes: ``fixed`` bytes, and its lists' items.

    ``least`` is the smallest number of bytes that an encoded value takes. ``each`` is the largest
    number of bytes that one encoded byte takes when it is decoded. ``members`` is the number of
    fields of a record.
    """

    fixed: int
    least: int
    members: int = 0
    each: int = _BYTE
    lists: tuple[_Lists, ...] = ()

    @classmethod
    def of(cls, schema: Any) -> AvroCost:
        """Return the cost of a schema.

        Raises UnsupportedFeatureError for a recursive or unknown type, and FormatError for lists
        whose items take no byte, because such lists can have any length.
        """
        return _cost(schema, {}, _DEEPEST)

    def most(self, records: int, size: int) -> int:
        """Return an upper bound of the memory for ``records`` records with ``size`` encoded bytes.

        ``size`` is the size of all of them together.
        """
        return records * self.fixed + self.each * size

    def of_lists(self, value: Any) -> int:
        """Return how many bytes the items of all lists in a decoded value take."""
        size = 0
        for it in self.lists:
            found = value
            for name in it.path:
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, list | dict):
                size += len(found) * (_MEMBER + it.item.fixed)
                if it.item.lists:
                    items = found.values() if isinstance(found, dict) else found
                    size += sum(map(it.item.of_lists, items))
        return size


def _cost(schema: Any, named: dict[str, AvroCost], depth: int) -> AvroCost:
    if depth == 0:
        raise UnsupportedFeatureError(f"an Avro schema is nested deeper than {_DEEPEST} levels")
    if isinstance(schema, list):
        return _united([_cost(it, named, depth - 1) for it in schema])
    kind = schema.get("type") if isinstance(schema, Mapping) else schema
    if isinstance(kind, list | Mapping):
        return _cost(kind, named, depth - 1)
    found = _made(schema, kind, named, depth - 1)
    name = schema.get("name") if isinstance(schema, Mapping) else None
    # Not before: a type that holds itself is not known inside of it.
    if isinstance(name, str) and named.setdefault(_plain(name), found) != found:
        raise UnsupportedFeatureError("an Avro schema has two types of one name")
    return found


def _plain(name: str) -> str:
    """Return a name without its namespace, which a reference may leave out."""
    return name.rpartition(".")[2]


def _made(schema: Any, kind: Any, named: dict[str, AvroCost], depth: int) -> AvroCost:
    if isinstance(kind, str) and kind in _LEAST:
        return AvroCost(fixed=_LEAF, least=_LEAST[kind])
    if isinstance(kind, str) and _plain(kind) in named:
        return named[_plain(kind)]
    parts = schema if isinstance(schema, Mapping) else {}
    size = parts.get("size")
    if kind == "fixed" and isinstance(size, int) and size >= 0:
        return AvroCost(fixed=_LEAF, least=size)
    if kind in ("record", "error") and isinstance(parts.get("fields"), list):
        return _record(parts["fields"], named, depth)
    if kind in ("array", "map"):
        item = _cost(parts.get("items" if kind == "array" else "values"), named, depth)
        return _list(item, least=item.least + (kind == "map"))
    raise UnsupportedFeatureError("an Avro schema has a type that is not read here")


def _record(fields: Sequence[Any], named: dict[str, AvroCost], depth: int) -> AvroCost:
    parts: list[tuple[str, AvroCost]] = []
    for each in fields:
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str):
            raise FormatError("an Avro schema has a field without a name")
        parts.append((each["name"], _cost(each.get("type"), named, depth)))
    return AvroCost(
        fixed=_CONTAINER + sum(_MEMBER + it.fixed for _, it in parts),
        least=sum(it.least for _, it in parts),
        members=len(parts),
        each=max([_BYTE, *(it.each for _, it in parts)]),
        lists=tuple(
            _Lists(path=(name, *inner.path), item=inner.item)
            for name, it in parts
            for inner in it.lists
        ),
    )


def _list(item: AvroCost, *, least: int) -> AvroCost:
    if not least:
        raise FormatError("an Avro file has lists of items that take no byte")
    # Each encoded byte is of a smallest item, or of what is inside of an item.
    each = max(item.each, _BYTE) + -(-(_MEMBER + item.fixed) // least)
    return AvroCost(fixed=_CONTAINER, least=1, each=each, lists=(_Lists(path=(), item=item),))


def _united(branches: Sequence[AvroCost]) -> AvroCost:
    """Return the cost of a union of ``branches``.

    An encoded union starts with its branch's index.
    """
    return AvroCost(
        fixed=max([_LEAF, *(it.fixed for it in branches)]),
        least=1 + min([it.least for it in branches], default=0),
        each=max([_BYTE, *(it.each for it in branches)]),
        lists=tuple(inner for it in branches for inner in it.lists),
    )
