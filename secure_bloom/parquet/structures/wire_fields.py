"""Find fields in Thrift compact bytes, without decoding the other fields.

    field   header (short: delta << 4 | type; long: type, zigzag id) | value
    struct  fields in any order | 0

Thrift compact protocol:
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from secure_bloom.errors import FormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
#: Parquet's own structures nest eight deep.  Deeper ones are an attack on Python's stack.
MAX_DEPTH = 32
#: Most elements of one list, set or map.  An element can be one byte in the file, and takes about a
#: thousand bytes as an object.  The longest list of a real footer is that of its columns.
MAX_ELEMENTS = 1 << 18


class WireType(enum.IntEnum):
    """The type of a value in a field's header. A bool is in the type alone."""

    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


class Field(NamedTuple):
    """A field in a buffer: its header starts at ``start``, its value is ``[value, end)``."""

    type: int
    start: int
    value: int
    end: int


class Fields(NamedTuple):
    """The fields of a structure by id, in the order of the bytes. ``stop`` is its last byte."""

    by_id: dict[int, Field]
    start: int
    stop: int


def find_fields(buffer: Buffer, start: int = 0) -> Fields:
    """Return the fields of the structure at ``start``.

    Raises FormatError for damaged bytes, and for a field that occurs twice: readers do not agree on
    which one counts.
    """
    return find_nested(buffer, start, None)[0]


def find_nested(buffer: Buffer, start: int, within: int | None) -> tuple[Fields, Fields | None]:
    """Return the fields of the structure at ``start``, and of the structure in field ``within``.

    Both are found in one pass: most bytes of a column chunk are its metadata. Raises the errors of
    :func:`find_fields`.
    """
    inner: Fields | None = None
    by_id: dict[int, Field] = {}
    position, field_id = start, 0
    try:
        while (head := buffer[position]) != 0:
            field_id, value = field_header(buffer, position, head, field_id)
            if field_id == within and head & 0x0F == WireType.STRUCT:
                inner = find_fields(buffer, value)
                end = inner.stop + 1
            else:
                # A type that is none is a KeyError here, and damaged below.
                end = SKIP[head & 0x0F](buffer, value, MAX_DEPTH)
            if field_id in by_id:
                raise FormatError(f"Thrift field {field_id} occurs twice in one structure")
            by_id[field_id] = Field(head & 0x0F, position, value, end)
            position = end
    except (IndexError, KeyError) as exc:
        raise FormatError(
            f"Thrift structure is damaged near byte {position} of {len(buffer)}"
        ) from exc
    return Fields(by_id, start, position), inner


def list_elements(buffer: Buffer, field: Field) -> list[tuple[int, int]]:
    """Return the start and end of each structure of a list.

    Raises FormatError for a list of anything else.
    """
    size, element, position = list_header(buffer, field.value)
    if field.type != WireType.LIST or (size and element != WireType.STRUCT):
        raise FormatError("a Thrift field is not a list of structures")
    found = []
    for _ in range(size):
        end = _skip_struct(buffer, position, MAX_DEPTH)
        found.append((position, end))
        position = end
    return found


def elements(buffer: Buffer, field: Field) -> list[Field]:
    """Return the elements of a list, of any type. They have no headers."""
    size, element, position = list_header(buffer, field.value)
    found = []
    for _ in range(size):
        end = SKIP_ELEMENT[element](buffer, position, MAX_DEPTH)
        found.append(Field(element, position, position, end))
        position = end
    return found


def encoded_elements(buffer: Buffer, field: Field | None) -> list[bytes]:
    """Return the bytes of each structure of a list, or [] if there is no list.

    Raises the errors of :func:`list_elements`.
    """
    found = [] if field is None else list_elements(buffer, field)
    return [bytes(buffer[start:end]) for start, end in found]


def content(buffer: Buffer, field: Field) -> bytes:
    """Return the bytes of a text or binary field. Raises FormatError for another type."""
    if field.type != WireType.BINARY:
        raise FormatError("a Thrift field that should be bytes is something else")
    _, start = read_varint(buffer, field.value)
    return bytes(buffer[start : field.end])


def number(buffer: Buffer, field: Field | None) -> int:
    """Return the value of a field of 16, 32 or 64 bits. Raises FormatError for any other field."""
    if field is None or field.type not in (WireType.I16, WireType.I32, WireType.I64):
        raise FormatError("a Thrift field that should be a number is missing, or something else")
    encoded, _ = read_varint(buffer, field.value)
    # Zigzag, the mirror of what `splices` writes: the lowest bit is the sign.
    return encoded >> 1 ^ -(encoded & 1)


def field_header(buffer: Buffer, position: int, head: int, before: int) -> tuple[int, int]:
    """Return a field's id, and where its value starts."""
    if head >> 4:
        # A difference of 0 marks the long form, so ids that repeat or fall are written out.
        return before + (head >> 4), position + 1
    number, value = read_varint(buffer, position + 1)
    return number >> 1 ^ -(number & 1), value


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return a number without a sign, and where it ends."""
    number = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        # A number of 64 bits takes ten bytes at most; a longer one would grow without end.
        if shift > 63:
            raise IndexError(position)


def list_header(buffer: Buffer, position: int) -> tuple[int, int, int]:
    """Return the number and the type of a list's elements, and where the first one starts."""
    head = buffer[position]
    size, position = head >> 4, position + 1
    if size == 15:
        size, position = read_varint(buffer, position)
    # Each element takes at least one byte, so a larger number cannot be true.
    if size > MAX_ELEMENTS or size > len(buffer) - position:
        raise FormatError(
            f"a Thrift container says it has {size} elements, {len(buffer) - position} bytes remain"
        )
    return size, head & 0x0F, position


def _skip_nothing(_buffer: Buffer, position: int, _depth: int) -> int:
    return position


def _skip_fixed(width: int) -> Callable[[Buffer, int, int], int]:
    def skip(buffer: Buffer, position: int, _depth: int) -> int:
        # A slice past the end would be shorter without an error.
        if position + width > len(buffer):
            raise IndexError(position)
        return position + width

    return skip


def _skip_varint(buffer: Buffer, position: int, _depth: int) -> int:
    # Most numbers are one byte, and a footer has thousands.
    return position + 1 if buffer[position] < 0x80 else read_varint(buffer, position)[1]


def _skip_binary(buffer: Buffer, position: int, _depth: int) -> int:
    size, position = read_varint(buffer, position)
    if size > len(buffer) - position:
        raise IndexError(position)
    return position + size


def _skip_list(buffer: Buffer, position: int, depth: int) -> int:
    size, element, position = list_header(buffer, position)
    # Looked up for an empty list too: an element type that is none is damage.
    skip = SKIP_ELEMENT[element]
    for _ in range(size):
        position = skip(buffer, position, _below(depth))
    return position


def _skip_map(buffer: Buffer, position: int, depth: int) -> int:
    size, start = read_varint(buffer, position)
    # An empty map is one byte, without the types of keys and values.
    if size == 0:
        return start
    if size > MAX_ELEMENTS or size > len(buffer) - start:
        raise FormatError(
            f"a Thrift container says it has {size} elements, {len(buffer) - start} bytes remain"
        )
    # One byte has both types: that of the keys in its upper half, that of the values in its lower.
    types, position = buffer[start], start + 1
    for _ in range(size):
        position = SKIP_ELEMENT[types >> 4](buffer, position, _below(depth))
        position = SKIP_ELEMENT[types & 0x0F](buffer, position, _below(depth))
    return position


def _skip_struct(buffer: Buffer, position: int, depth: int) -> int:
    below = _below(depth)
    while (head := buffer[position]) != 0:
        value = position + 1 if head >> 4 else read_varint(buffer, position + 1)[1]
        position = SKIP[head & 0x0F](buffer, value, below)
    return position + 1


def _below(depth: int) -> int:
    if depth == 0:
        raise FormatError(f"Thrift structures nest deeper than {MAX_DEPTH}")
    return depth - 1


SKIP: dict[int, Callable[[Buffer, int, int], int]] = {
    WireType.TRUE: _skip_nothing,
    WireType.FALSE: _skip_nothing,
    WireType.BYTE: _skip_fixed(1),
    WireType.I16: _skip_varint,
    WireType.I32: _skip_varint,
    WireType.I64: _skip_varint,
    WireType.DOUBLE: _skip_fixed(8),
    WireType.BINARY: _skip_binary,
    WireType.LIST: _skip_list,
    WireType.SET: _skip_list,
    WireType.MAP: _skip_map,
    WireType.STRUCT: _skip_struct,
    WireType.UUID: _skip_fixed(16),
}


#: In a list a bool takes a byte.
SKIP_ELEMENT = {**SKIP, WireType.TRUE: _skip_fixed(1), WireType.FALSE: _skip_fixed(1)}
