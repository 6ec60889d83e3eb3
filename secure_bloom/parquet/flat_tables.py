"""Read tables of FlatBuffers, in which Arrow has its metadata, field by field.

    field      offset (uint16) in the table's vtable, or 0 if the table lacks it
    table      offset (int32) to its vtable: its size, the table's size, offsets of fields
    vector     number of items (uint32), items

Offsets are the writer's claim: struct.error is raised for one that leads out of the bytes.
"""

from __future__ import annotations

from struct import Struct, unpack_from

_UINT16, _INT32 = Struct("<H").unpack_from, Struct("<i").unpack_from
_UINT32 = Struct("<I").unpack_from


def root(data: bytes) -> int:
    """Return the offset of the root table."""
    return int(_UINT32(data)[0])


def field_at(data: bytes, table: int, field: int) -> int:
    """Return the offset of a field of a table, or 0 if the table lacks it."""
    vtable: int = table - _INT32(data, table)[0]
    if vtable < 0 or 4 + 2 * field >= _UINT16(data, vtable)[0]:
        return 0
    offset: int = _UINT16(data, vtable + 4 + 2 * field)[0]
    return table + offset if offset else 0


def scalar(data: bytes, table: int, field: int, kind: str) -> int:
    """Return a number, read by the format character ``kind`` of :mod:`struct`, or 0 without one."""
    at = field_at(data, table, field)
    return int(unpack_from(kind, data, at)[0]) if at else 0


def table_at(data: bytes, table: int, field: int) -> int | None:
    """Return the offset of the table or vector that a field refers to, or None without one."""
    at = field_at(data, table, field)
    return at + int(_UINT32(data, at)[0]) if at else None


def vector(data: bytes, table: int, field: int) -> tuple[int, int]:
    """Return the offset of the first item of a vector, and the number of items."""
    at = table_at(data, table, field)
    return (0, 0) if at is None else (at + 4, int(_UINT32(data, at)[0]))


def tables(data: bytes, table: int, field: int) -> list[int]:
    """Return the offsets of the tables in a vector."""
    start, count = vector(data, table, field)
    if start + 4 * count > len(data):
        raise ValueError("a vector is longer than its bytes")
    places = range(start, start + 4 * count, 4)
    return [at + int(_UINT32(data, at)[0]) for at in places]
