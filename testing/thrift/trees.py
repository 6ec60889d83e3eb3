"""Thrift compact bytes <-> tree, bounded by the bytes available.

A tree keeps every field in the order it was read, known or not.  Reading and writing go through the
`thrift` library's ``TCompactProtocol``; this module adds the bounds (lengths, counts, depth).
Thrift compact protocol: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.protocol.TProtocol import TProtocolException, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase, TTransportException

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.wire_fields import MAX_DEPTH, MAX_ELEMENTS

Buffer: TypeAlias = bytes | bytearray | memoryview
Value: TypeAlias = "bool | int | float | bytes | UUID | Struct | Sequence | Map"


@dataclass(slots=True)
class Struct:
    """A structure: field id -> (Thrift type, value), in the order of the wire."""

    fields: dict[int, tuple[int, Value]] = field(default_factory=dict)


@dataclass(slots=True)
class Sequence:
    """A list or a set, with the Thrift type of its elements."""

    element_type: int
    items: list[Value]


@dataclass(slots=True)
class Map:
    """A map as a list of pairs, with the Thrift types of its keys and values."""

    key_type: int
    value_type: int
    items: list[tuple[Value, Value]]


def decode(buffer: Buffer) -> tuple[Struct, int]:
    """Return the structure at the start of ``buffer``, and the number of bytes it takes.

    Bytes after its end are ignored: parquet-java pads encrypted structures with zeros.  Raises
    FormatError for anything that is not a whole, well-formed structure.
    """
    transport = _BoundedTransport(buffer)
    protocol = TCompactProtocol(transport, string_length_limit=len(buffer))
    try:
        tree = _read_struct(protocol, transport, MAX_DEPTH)
    except (TProtocolException, TTransportException, KeyError, struct.error) as exc:
        raise FormatError(
            f"Thrift structure is damaged near byte {transport.position} of {len(buffer)}"
        ) from exc
    return tree, transport.position


def encode(tree: Struct) -> bytes:
    """Return the compact bytes of ``tree``, which :func:`decode` reads."""
    transport = TMemoryBuffer()
    protocol = TCompactProtocol(transport)
    try:
        _write_struct(protocol, tree)
    except (TProtocolException, struct.error) as exc:
        raise FormatError("a Thrift integer is outside the range of its type") from exc
    written: bytes = transport.getvalue()
    return written


class _BoundedTransport(TTransportBase):  # type: ignore[misc]
    """Reads from one buffer and never past its end."""

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer)
        self.position = 0

    @property
    def remaining(self) -> int:
        return len(self._view) - self.position

    def readAll(self, size: int) -> bytes:  # noqa: N802 - the library's name
        if size > self.remaining:
            raise TTransportException(TTransportException.END_OF_FILE, "structure is cut short")
        start, self.position = self.position, self.position + size
        return bytes(self._view[start : self.position])


_SCALAR_READERS = {
    TType.BOOL: TCompactProtocol.readBool,
    TType.BYTE: TCompactProtocol.readByte,
    TType.I16: TCompactProtocol.readI16,
    TType.I32: TCompactProtocol.readI32,
    TType.I64: TCompactProtocol.readI64,
    TType.DOUBLE: TCompactProtocol.readDouble,
    TType.STRING: TCompactProtocol.readBinary,
    TType.UUID: TCompactProtocol.readUuid,
}

_SCALAR_WRITERS = {
    TType.BOOL: TCompactProtocol.writeBool,
    TType.BYTE: TCompactProtocol.writeByte,
    TType.I16: TCompactProtocol.writeI16,
    TType.I32: TCompactProtocol.writeI32,
    TType.I64: TCompactProtocol.writeI64,
    TType.DOUBLE: TCompactProtocol.writeDouble,
    TType.STRING: TCompactProtocol.writeBinary,
    TType.UUID: TCompactProtocol.writeUuid,
}


def _read_value(protocol: Any, transport: _BoundedTransport, ttype: int, depth: int) -> Value:
    scalar = _SCALAR_READERS.get(ttype)
    if scalar is not None:
        value: Value = scalar(protocol)
        return value
    if depth == 0:
        raise FormatError(f"Thrift structures nest deeper than {MAX_DEPTH}")
    container: Value = _CONTAINER_READERS[ttype](protocol, transport, depth - 1)
    return container


def _read_struct(protocol: Any, transport: _BoundedTransport, depth: int) -> Struct:
    fields: dict[int, tuple[int, Value]] = {}
    protocol.readStructBegin()
    while True:
        _, ttype, field_id = protocol.readFieldBegin()
        if ttype == TType.STOP:
            break
        if field_id in fields:
            raise FormatError(f"Thrift field {field_id} occurs twice in one structure")
        fields[field_id] = (ttype, _read_value(protocol, transport, ttype, depth))
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return Struct(fields)


def _read_sequence(protocol: Any, transport: _BoundedTransport, depth: int) -> Sequence:
    element_type, size = protocol.readListBegin()
    _check_count(size, transport)
    items = [_read_value(protocol, transport, element_type, depth) for _ in range(size)]
    protocol.readListEnd()
    return Sequence(element_type, items)


def _read_map(protocol: Any, transport: _BoundedTransport, depth: int) -> Map:
    key_type, value_type, size = protocol.readMapBegin()
    _check_count(size, transport)
    items = [
        (
            _read_value(protocol, transport, key_type, depth),
            _read_value(protocol, transport, value_type, depth),
        )
        for _ in range(size)
    ]
    protocol.readMapEnd()
    return Map(key_type, value_type, items)


def _check_count(size: int, transport: _BoundedTransport) -> None:
    if size > MAX_ELEMENTS:
        raise FormatError(
            f"a Thrift container says it has {size} elements, at most {MAX_ELEMENTS} are read"
        )
    # Every element takes at least one byte, so a larger count is a lie, and lists are made by it.
    if size > transport.remaining:
        raise FormatError(
            f"a Thrift container says it has {size} elements, {transport.remaining} bytes remain"
        )


_CONTAINER_READERS: dict[int, Any] = {
    TType.STRUCT: _read_struct,
    TType.LIST: _read_sequence,
    TType.SET: _read_sequence,
    TType.MAP: _read_map,
}


def _write_value(protocol: Any, ttype: int, value: Any) -> None:
    scalar = _SCALAR_WRITERS.get(ttype)
    if scalar is not None:
        scalar(protocol, value)
    else:
        _CONTAINER_WRITERS[ttype](protocol, value)


def _write_struct(protocol: Any, tree: Struct) -> None:
    protocol.writeStructBegin("")
    # Fields keep the order of the wire: those that are not changed must come out byte for byte.
    for field_id, (ttype, value) in tree.fields.items():
        protocol.writeFieldBegin("", ttype, field_id)
        _write_value(protocol, ttype, value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _write_sequence(protocol: Any, sequence: Sequence) -> None:
    protocol.writeListBegin(sequence.element_type, len(sequence.items))
    for item in sequence.items:
        _write_value(protocol, sequence.element_type, item)
    protocol.writeListEnd()


def _write_map(protocol: Any, mapping: Map) -> None:
    protocol.writeMapBegin(mapping.key_type, mapping.value_type, len(mapping.items))
    for key, value in mapping.items:
        _write_value(protocol, mapping.key_type, key)
        _write_value(protocol, mapping.value_type, value)
    protocol.writeMapEnd()


_CONTAINER_WRITERS: dict[int, Any] = {
    TType.STRUCT: _write_struct,
    TType.LIST: _write_sequence,
    TType.SET: _write_sequence,
    TType.MAP: _write_map,
}
