"""Edit Thrift compact bytes in place: set some fields, and copy all other bytes.

A structure contains neither its own length nor its position, so an edit inside it changes nothing
around it.  All bytes that are not edited are copied unchanged: unknown fields, long forms, and
whatever else a writer chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from thrift.protocol.TProtocol import TType

from secure_bloom.parquet.structures.declarations import FieldType, Structure
from secure_bloom.parquet.structures.wire_fields import Field, Fields, WireType, find_fields


class NewValue(NamedTuple):
    """A value to be set: its type in the field's header, and its bytes."""

    type: int
    encoded: bytes


class Splice(NamedTuple):
    """Bytes that replace ``[start, end)``."""

    start: int
    end: int
    new: bytes


def set_fields(buffer: bytes, fields: Fields, new: Mapping[int, NewValue | None]) -> list[Splice]:
    """Return the splices that set fields of one structure, or remove those set to None.

    An existing field keeps its place. A new field is inserted before the first field with a higher
    id.  The header of the field after it is encoded again if it counts from the field before it.
    """
    headers = _Headers(buffer, fields)
    order = list(fields.by_id)
    for field_id in sorted(new.keys() - fields.by_id.keys()):
        if new[field_id] is not None:
            # Ids need not ascend on the wire, so the first higher one is looked for.
            behind = (i for i, other in enumerate(order) if other > field_id)
            order.insert(next(behind, len(order)), field_id)
    return headers.splices(order, new)


def with_fields(buffer: bytes, new: Mapping[int, NewValue | None]) -> bytes:
    """Return the structure at the start of ``buffer`` with some fields set or removed."""
    fields = find_fields(buffer, 0)
    return splice(buffer[: fields.stop + 1], set_fields(buffer, fields, new))


def splice(buffer: bytes, splices: Iterable[Splice]) -> bytes:
    """Return ``buffer`` with all splices made. They must not overlap."""
    parts = []
    done = 0
    for start, end, new in sorted(splices):
        # A mistake of the caller: fields of one structure, whatever a file holds, never overlap.
        if start < done:
            raise ValueError("splices overlap")
        parts += [buffer[done:start], new]
        done = end
    parts.append(buffer[done:])
    return b"".join(parts)


def i16(value: int) -> NewValue:
    """Return a value of 16 bits."""
    return NewValue(WireType.I16, _zigzag(value))


def i32(value: int) -> NewValue:
    """Return a value of 32 bits."""
    return NewValue(WireType.I32, _zigzag(value))


def i64(value: int) -> NewValue:
    """Return a value of 64 bits."""
    return NewValue(WireType.I64, _zigzag(value))


def binary(value: bytes) -> NewValue:
    """Return bytes, or a text in UTF-8, as a value."""
    return NewValue(WireType.BINARY, varint(len(value)) + value)


def struct(encoded: bytes) -> NewValue:
    """Return a structure, given its own bytes, as a value."""
    return NewValue(WireType.STRUCT, encoded)


def structs(encoded: Iterable[bytes]) -> NewValue:
    """Return a list of structures, given the bytes of each."""
    return _list(WireType.STRUCT, list(encoded))


def texts(values: Iterable[str]) -> NewValue:
    """Return a list of texts."""
    return _list(WireType.BINARY, [binary(value.encode()).encoded for value in values])


def structure(fields: Mapping[int, NewValue]) -> bytes:
    """Return the bytes of a new structure."""
    parts, before = [], 0
    for field_id, value in sorted(fields.items()):
        parts += [_header(field_id - before, field_id, value.type), value.encoded]
        before = field_id
    return b"".join([*parts, EMPTY])


def encoded(declared: type[Structure], **fields: Any) -> bytes:
    """Return the bytes of a new structure with the named fields; a field that is None is left out.

    Structures in it are given as their bytes.
    """
    new = {
        field.id: _value(field.kind, fields[name])
        for name, field in declared.FIELDS.items()
        if fields.get(name) is not None
    }
    return structure(new)


#: A structure without fields.
EMPTY: Final = b"\0"


def _value(kind: FieldType[Any], value: Any) -> NewValue:
    if kind.ttype == TType.LIST:
        inner: FieldType[Any] = kind.inner
        return _list(_ELEMENTS[inner.ttype], [_value(inner, it).encoded for it in value])
    if kind.ttype == TType.STRUCT:
        return struct(value)
    if kind.ttype == TType.STRING:
        return binary(value.encode() if isinstance(value, str) else value)
    return NewValue(_ELEMENTS[kind.ttype], _zigzag(value))


#: The types of numbers, and of elements of lists, that are written.
_ELEMENTS: Final = {
    TType.I16: WireType.I16,
    TType.I32: WireType.I32,
    TType.I64: WireType.I64,
    TType.STRING: WireType.BINARY,
    TType.STRUCT: WireType.STRUCT,
}


def _list(element: WireType, parts: list[bytes]) -> NewValue:
    size = len(parts)
    # 15 as the size says that the real one follows as a varint.
    head = bytes([size << 4 | element]) if size < 15 else bytes([0xF0 | element]) + varint(size)
    return NewValue(WireType.LIST, head + b"".join(parts))


def varint(value: int) -> bytes:
    """Return an unsigned number, seven bits in a byte, the lowest bits first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _zigzag(value: int) -> bytes:
    # Zigzag: the sign becomes the lowest bit, so small negative numbers are short too.
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


class _Headers:
    """Encodes the headers of one structure's fields, and keeps those that need no change."""

    def __init__(self, buffer: bytes, fields: Fields) -> None:
        self._buffer = buffer
        self._fields = fields

    def splices(self, order: list[int], new: Mapping[int, NewValue | None]) -> list[Splice]:
        """Return the splices that set or remove the fields in ``new``.

        The header of the next field is written anew where it counts from a field that changed.
        """
        found: list[Splice] = []
        before, old_before, place = 0, 0, self._fields.start
        for field_id in order:
            field = self._fields.by_id.get(field_id)
            value = new.get(field_id) if field_id in new else None
            if field is not None:
                place = field.start
            # Removed, and the field after it must now count from the one before.
            if field_id in new and value is None:
                assert field is not None  # noqa: S101 - what is not there is not in the order
                found.append(Splice(field.start, field.end, b""))
            elif value is not None:
                written = _header(field_id - before, field_id, value.type) + value.encoded
                end = place if field is None else field.end
                found.append(Splice(place, end, written))
                before = field_id
            else:
                assert field is not None  # noqa: S101 - what is not new is there
                if before != old_before and self._is_canonical(field_id, field, old_before):
                    header = _header(field_id - before, field_id, field.type)
                    found.append(Splice(field.start, field.value, header))
                before = field_id
            if field is not None:
                old_before, place = field_id, field.end
        return _joined(found)

    def _is_canonical(self, field_id: int, field: Field, before: int) -> bool:
        # An id that was written out where none had to be stays as its writer chose.
        shortest = _header(field_id - before, field_id, field.type)
        return self._buffer[field.start : field.value] == shortest


def _joined(splices: list[Splice]) -> list[Splice]:
    """Join splices at one place into one. An insertion goes before the bytes at its place."""
    joined: list[Splice] = []
    for each in splices:
        if joined and joined[-1].end == each.start and joined[-1].start == joined[-1].end:
            last = joined.pop()
            each = Splice(last.start, each.end, last.new + each.new)
        joined.append(each)
    return joined


def _header(delta: int, field_id: int, wire_type: int) -> bytes:
    # The short form holds a difference of 1 to 15 to the id before.
    if 0 < delta <= 15:
        return bytes([delta << 4 | wire_type])
    return bytes([wire_type]) + _zigzag(field_id)
