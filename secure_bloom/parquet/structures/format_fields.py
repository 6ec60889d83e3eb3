"""List the texts of Thrift structures, and the fields that the Parquet format does not have.

:mod:`.metadata` declares the fields that this package uses.  This module knows all fields of the
format. Any other field is from a later format, or was added for another purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures import metadata
from secure_bloom.parquet.structures.declarations import STRING, Empty, Structure
from secure_bloom.parquet.structures.records import record_class, rewritten
from secure_bloom.parquet.structures.wire_fields import (
    MAX_DEPTH,
    SKIP,
    SKIP_ELEMENT,
    Buffer,
    WireType,
    field_header,
    list_header,
    read_varint,
)


class FieldContent(NamedTuple):
    """A field of a structure: the bytes of a text, a floating-point number or a list of numbers.

    An unknown field has all its bytes, header included.
    """

    structure: str
    field: int
    value: bytes
    is_known: bool


def contents(structure: str, buffer: Buffer, start: int = 0) -> list[FieldContent]:
    """Return the texts and floating-point numbers of a structure, and its unknown fields.

    The structures in it are included. A field that occurs again is unknown: readers do not agree on
    which one counts.  Raises FormatError for damaged bytes.
    """
    found: list[FieldContent] = []
    try:
        _read(structure, buffer, start, found)
    except (IndexError, KeyError) as exc:
        raise FormatError(f"a {structure} is damaged") from exc
    return found


def known_fields(structure: str, buffer: Buffer) -> Any | None:
    """Return the structure as a record if :func:`contents` would find no unknown field in it.

    The record has the attributes of the structure's view in :mod:`.metadata`, and ``field_7`` for a
    field 7 that the view lacks.  It is made at a fifth of the cost of the contents.  None is no
    proof of an unknown field: the bytes may be encoded in another way than Thrift's library does.
    """
    record = _whole(structure)()
    written = rewritten(record, buffer)
    # The library writes only the fields that it knows, each once and in order.
    return record if written is not None and buffer[: len(written)] == written else None


def _read(structure: str, buffer: Buffer, position: int, found: list[FieldContent]) -> int:
    # A structure that is not listed has no fields.
    fields, field_id, seen = _FIELDS.get(structure, {}), 0, set[int]()
    while (head := buffer[position]) != 0:
        wire_type, delta = head & 0x0F, head >> 4
        # The short form, which nearly all fields have, takes no call.
        if delta:
            field_id, value = field_id + delta, position + 1
        else:
            field_id, value = field_header(buffer, position, head, field_id)
        kind = fields.get(field_id)
        if kind is None or wire_type not in kind.wire_types or field_id in seen:
            end = SKIP[wire_type](buffer, value, MAX_DEPTH)
            found.append(FieldContent(structure, field_id, bytes(buffer[position:end]), False))
        elif kind.read is None:
            end = SKIP[wire_type](buffer, value, MAX_DEPTH)
        else:
            end = kind.read(_Place(structure, field_id), buffer, value, found)
        seen.add(field_id)
        position = end
    return position + 1


class _Place(NamedTuple):
    """A field of a structure."""

    structure: str
    field: int


_Reader = Callable[[_Place, Buffer, int, list[FieldContent]], int]


class _Kind(NamedTuple):
    """The wire types that a field may have, and its reader. None: the type cannot carry text."""

    wire_types: tuple[int, ...]
    read: _Reader | None = None


def _binary(at: _Place, buffer: Buffer, position: int, found: list[FieldContent]) -> int:
    size, start = read_varint(buffer, position)
    end = start + size
    if end > len(buffer):
        raise IndexError(end)
    found.append(FieldContent(*at, bytes(buffer[start:end]), True))
    return end


def _as_stored(wire_type: WireType) -> _Reader:
    def read(at: _Place, buffer: Buffer, position: int, found: list[FieldContent]) -> int:
        end = SKIP[wire_type](buffer, position, MAX_DEPTH)
        found.append(FieldContent(*at, bytes(buffer[position:end]), True))
        return end

    return read


def _structure(name: str) -> _Reader:
    def read(_: _Place, buffer: Buffer, position: int, found: list[FieldContent]) -> int:
        return _read(name, buffer, position, found)

    return read


def _list_of(wire_type: int, read_element: _Reader) -> _Reader:
    def read(at: _Place, buffer: Buffer, position: int, found: list[FieldContent]) -> int:
        size, element, end = list_header(buffer, position)
        for _ in range(size):
            if element == wire_type:
                end = read_element(at, buffer, end, found)
            else:
                end = SKIP_ELEMENT[element](buffer, end, MAX_DEPTH)
        # Elements of another type: no reader of the format takes them for what they are.
        if size and element != wire_type:
            found.append(FieldContent(*at, bytes(buffer[position:end]), False))
        return end

    return read


_KINDS: Final = {
    "bool": _Kind((WireType.TRUE, WireType.FALSE)),
    "i8": _Kind((WireType.BYTE,)),
    "i16": _Kind((WireType.I16,)),
    "i32": _Kind((WireType.I32,)),
    "i64": _Kind((WireType.I64,)),
    "double": _Kind((WireType.DOUBLE,), _as_stored(WireType.DOUBLE)),
    "binary": _Kind((WireType.BINARY,), _binary),
    "list<i32>": _Kind((WireType.LIST,), _as_stored(WireType.LIST)),
    "list<i64>": _Kind((WireType.LIST,), _as_stored(WireType.LIST)),
    "list<bool>": _Kind((WireType.LIST,)),
    "list<binary>": _Kind((WireType.LIST,), _list_of(WireType.BINARY, _binary)),
}


def _kind(name: str) -> _Kind:
    known = _KINDS.get(name)
    if known is not None:
        return known
    if name.startswith("list<"):
        element = _structure(name[len("list<") : -1])
        return _Kind((WireType.LIST,), _list_of(WireType.STRUCT, element))
    return _Kind((WireType.STRUCT,), _structure(name))


#: Structure -> the ids of its fields and their types, as in the IDL; an enumeration is an i32, and
#: a string is binary.  A structure without fields is not listed.
TYPES: Final[dict[str, dict[int, str]]] = {
    "SizeStatistics": {1: "i64", 2: "list<i64>", 3: "list<i64>"},
    "BoundingBox": dict.fromkeys(range(1, 9), "double"),
    "GeospatialStatistics": {1: "BoundingBox", 2: "list<i32>"},
    "Statistics": {
        **dict.fromkeys((1, 2, 5, 6), "binary"),
        **dict.fromkeys((3, 4, 9), "i64"),
        **dict.fromkeys((7, 8), "bool"),
    },
    "DecimalType": {1: "i32", 2: "i32"},
    "TimeUnit": {1: "MilliSeconds", 2: "MicroSeconds", 3: "NanoSeconds"},
    "TimestampType": {1: "bool", 2: "TimeUnit"},
    "TimeType": {1: "bool", 2: "TimeUnit"},
    "IntType": {1: "i8", 2: "bool"},
    "VariantType": {1: "i8"},
    "GeometryType": {1: "binary"},
    "GeographyType": {1: "binary", 2: "i32"},
    "LogicalType": {
        1: "StringType",
        2: "MapType",
        3: "ListType",
        4: "EnumType",
        5: "DecimalType",
        6: "DateType",
        7: "TimeType",
        8: "TimestampType",
        10: "IntType",
        11: "NullType",
        12: "JsonType",
        13: "BsonType",
        14: "UUIDType",
        15: "Float16Type",
        16: "VariantType",
        17: "GeometryType",
        18: "GeographyType",
        19: "FileType",
    },
    "SchemaElement": {
        **dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9), "i32"),
        4: "binary",
        10: "LogicalType",
    },
    "DataPageHeader": {**dict.fromkeys((1, 2, 3, 4), "i32"), 5: "Statistics"},
    "DictionaryPageHeader": {1: "i32", 2: "i32", 3: "bool"},
    "DataPageHeaderV2": {
        **dict.fromkeys((1, 2, 3, 4, 5, 6), "i32"),
        7: "bool",
        8: "Statistics",
    },
    "BloomFilterAlgorithm": {1: "SplitBlockAlgorithm"},
    "BloomFilterHash": {1: "XxHash"},
    "BloomFilterCompression": {1: "Uncompressed"},
    "BloomFilterHeader": {
        1: "i32",
        2: "BloomFilterAlgorithm",
        3: "BloomFilterHash",
        4: "BloomFilterCompression",
    },
    "PageHeader": {
        **dict.fromkeys((1, 2, 3, 4), "i32"),
        5: "DataPageHeader",
        6: "IndexPageHeader",
        7: "DictionaryPageHeader",
        8: "DataPageHeaderV2",
    },
    "KeyValue": {1: "binary", 2: "binary"},
    "SortingColumn": {1: "i32", 2: "bool", 3: "bool"},
    "PageEncodingStats": {1: "i32", 2: "i32", 3: "i32"},
    "ColumnMetaData": {
        1: "i32",
        2: "list<i32>",
        3: "list<binary>",
        4: "i32",
        **dict.fromkeys((5, 6, 7, 9, 10, 11, 14), "i64"),
        8: "list<KeyValue>",
        12: "Statistics",
        13: "list<PageEncodingStats>",
        15: "i32",
        16: "SizeStatistics",
        17: "GeospatialStatistics",
    },
    "EncryptionWithColumnKey": {1: "list<binary>", 2: "binary"},
    "ColumnCryptoMetaData": {1: "EncryptionWithFooterKey", 2: "EncryptionWithColumnKey"},
    "ColumnChunk": {
        1: "binary",
        2: "i64",
        3: "ColumnMetaData",
        4: "i64",
        5: "i32",
        6: "i64",
        7: "i32",
        8: "ColumnCryptoMetaData",
        9: "binary",
    },
    "RowGroup": {
        1: "list<ColumnChunk>",
        2: "i64",
        3: "i64",
        4: "list<SortingColumn>",
        5: "i64",
        6: "i64",
        7: "i16",
    },
    "ColumnOrder": {1: "TypeDefinedOrder", 2: "IEEE754TotalOrder", 3: "Int96TimestampOrder"},
    "PageLocation": {1: "i64", 2: "i32", 3: "i64"},
    "OffsetIndex": {1: "list<PageLocation>", 2: "list<i64>"},
    "ColumnIndex": {
        1: "list<bool>",
        2: "list<binary>",
        3: "list<binary>",
        4: "i32",
        **dict.fromkeys((5, 6, 7, 8), "list<i64>"),
    },
    "AesGcmV1": {1: "binary", 2: "binary", 3: "bool"},
    "AesGcmCtrV1": {1: "binary", 2: "binary", 3: "bool"},
    "EncryptionAlgorithm": {1: "AesGcmV1", 2: "AesGcmCtrV1"},
    "FileMetaData": {
        1: "i32",
        2: "list<SchemaElement>",
        3: "i64",
        4: "list<RowGroup>",
        5: "list<KeyValue>",
        6: "binary",
        7: "list<ColumnOrder>",
        8: "EncryptionAlgorithm",
        9: "binary",
    },
    "FileCryptoMetaData": {1: "EncryptionAlgorithm", 2: "binary"},
}
_FIELDS: Final = {
    structure: {field: _kind(name) for field, name in types.items()}
    for structure, types in TYPES.items()
}


@functools.cache
def _whole(structure: str) -> Any:
    """Return a class with a ``thrift_spec`` of all fields of a structure of the format."""
    types, view = TYPES.get(structure, {}), getattr(metadata, structure, Empty)
    declared = {field.id: name for name, field in view.FIELDS.items()}
    others = {field: f"field_{field}" for field in types.keys() - declared.keys()}
    names = declared | others
    spec = tuple(
        (field, *_library_type(types[field], names[field], view), None) if field in types else None
        for field in range(max(types, default=-1) + 1)
    )
    members = {**dict.fromkeys(others.values()), "thrift_spec": spec}
    return type(structure, (record_class(view),), members)


def _library_type(kind: str, name: str, view: type[Structure]) -> tuple[int, str, Any]:
    if kind.startswith("list<"):
        element, _, details = _library_type(kind[len("list<") : -1], name, view)
        return TType.LIST, name, (element, details, False)
    if kind == "binary":
        return TType.STRING, name, "UTF8" if _is_text(view, name) else "BINARY"
    if kind in _LIBRARY_TYPES:
        return _LIBRARY_TYPES[kind], name, None
    whole = _whole(kind)
    return TType.STRUCT, name, [whole, whole.thrift_spec]


def _is_text(view: type[Structure], name: str) -> bool:
    """Return whether the view has a string, or a list of strings, in a field."""
    kind = view.FIELDS[name].kind if name in view.FIELDS else None
    return kind is not None and STRING in (kind, kind.inner)


_LIBRARY_TYPES: Final = {
    "bool": TType.BOOL,
    "i8": TType.BYTE,
    "i16": TType.I16,
    "i32": TType.I32,
    "i64": TType.I64,
    "double": TType.DOUBLE,
}
