"""Some fields of Thrift structures, found where they lie; the others are passed over.

Thrift compact protocol.  Every number comes from a file, so each is held against the bytes at hand,
and structures nest as deep as :data:`MAX_DEPTH` at most.  What the Thrift library refuses is
refused here as well, and so is a structure that is looked into if its field ids do not ascend:
then none stands in it twice.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import I64, brief_kernel, kernel

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
#: For each structure and field id: the wire type that is wanted, and what to do with its value.
#: A number below zero stands for another structure of the table, one above for a place among the
#: results, counted from 1; wire type 0 passes the field over.
Table: TypeAlias = NDArray[np.int16]

#: For each level of nesting how many values are left, and their two types in turns.
Levels: TypeAlias = Numbers

#: Where structures end that do not, and the value of fields that are not there.
NOWHERE: Final = -1
ABSENT: Final = -(2**63)
#: The answer for a field that is not what a table wants.
UNFIT: Final = -(2**62)
MAX_DEPTH: Final = 32
#: Field ids of a table; higher ones are passed over.
FIELD_IDS: Final = 32
#: More bytes than a buffer has.
TOO_LARGE: Final = 2**60
#: Elements of one list, set or map, more than which is an attack on the memory.
MAX_ELEMENTS: Final = 1 << 18
#: Field ids have 16 bits with their sign, and sizes 32: so many bytes at most.
MAX_FIELD_ID: Final = (1 << 15) - 1
ID_BYTES: Final = 3
SIZE_BYTES: Final = 5

STOP: Final = 0
TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
I16_TYPE: Final = 4
I32_TYPE: Final = 5
I64_TYPE: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12
UUID: Final = 13
#: Instead of a list's count, which then stands behind it.
LONG_LIST: Final = 15


@kernel
def longest(kind: int) -> int:
    """Bytes that a number of a wire type takes at most: 3, 5 or 10 for 16, 32 and 64 bits."""
    return max(ID_BYTES, 5 * (kind - I16_TYPE))


@kernel
def end_of_varint(data: Bytes, at: int, limit: int) -> int:
    """Where the number at ``at`` ends, which takes so many bytes at most."""
    end, size = at, data.size
    while end < size and data[end] >= 0x80:
        end += 1
    return end + 1 if end < size and end - at < limit else NOWHERE


@kernel
def read_varint(data: Bytes, at: int) -> tuple[int, int]:
    """The number of at most 63 bits at ``at``, and where it ends."""
    number, shift, size = 0, 0, data.size
    while at < size and data[at] >= 0x80 and shift < 56:
        number |= (I64(data[at]) & 0x7F) << shift
        shift += 7
        at += 1
    if at >= size or data[at] >= 0x80:
        return number, NOWHERE
    return number | I64(data[at]) << shift, at + 1


@kernel
def read_size(data: Bytes, at: int) -> tuple[int, int]:
    """A count of things that take a byte at least each, and where it ends; no more than remain."""
    number, end = read_varint(data, at)
    return number, end if number <= data.size - end and end - at <= SIZE_BYTES else NOWHERE


@kernel
def signed(number: int) -> int:
    """What a zigzag number stands for."""
    return number >> 1 ^ -(number & 1)


@kernel
def read_list_header(data: Bytes, at: int) -> tuple[int, int, int]:
    """The type and count of a list's elements, and where the first of them stands."""
    if at >= data.size:
        return STOP, 0, NOWHERE
    head, end = I64(data[at]), at + 1
    count = head >> 4
    if count == LONG_LIST:
        count, end = read_size(data, end)
    return head & 15, count, end if count <= min(data.size - end, MAX_ELEMENTS) else NOWHERE


@kernel
def read_field_header(data: Bytes, at: int, last: int) -> tuple[int, int, int]:
    """The wire type and id of a field, and where its value stands; ``last`` is the id before."""
    if at >= data.size:
        return STOP, last, NOWHERE
    head, end = I64(data[at]), at + 1
    kind, field = head & 15, last + (head >> 4)
    if kind == STOP:
        return STOP, last, end
    if field == last:
        number, end = read_varint(data, end)
        field = signed(number)
    is_fit = last < field <= MAX_FIELD_ID and end - at <= 1 + ID_BYTES
    return kind, field, end if is_fit else NOWHERE


@kernel
def pass_field_header(data: Bytes, at: int) -> tuple[int, int]:
    """As :func:`read_field_header`, of a field whose id does not matter; ``at`` is in the data."""
    head = I64(data[at])
    is_short = head & 15 == STOP or head >> 4 != 0
    return head & 15, at + 1 if is_short else end_of_varint(data, at + 1, ID_BYTES)


@kernel
def size_of(kind: int) -> int:
    """Bytes of a value that says nothing of its size; a truth value takes one, as in lists."""
    if TRUE <= kind <= BYTE:
        return 1
    if kind == DOUBLE:
        return 8
    return 16 if kind == UUID else TOO_LARGE


@kernel
def enter_map(data: Bytes, at: int) -> tuple[int, int, int, int]:
    """The types of a map's keys and values, how many there are of both, and where they start."""
    count, end = read_size(data, at)
    if end < 0 or count == 0:
        return STOP, STOP, 0, end
    if end >= data.size or count > MAX_ELEMENTS:
        return STOP, STOP, 0, NOWHERE
    first, second = I64(data[end] >> 4), I64(data[end] & 15)
    return first, second, 2 * count, end + 1 if first != STOP and second != STOP else NOWHERE


@kernel
def enter_container(data: Bytes, at: int, kind: int) -> tuple[int, int, int, int]:
    """What stands in a value, as of :func:`enter_map`; a count below 0: in a structure."""
    if kind == STRUCT:
        return STOP, STOP, -1, at
    if kind == MAP:
        return enter_map(data, at)
    element, count, end = read_list_header(data, at)
    if element > UUID or (element == STOP and count > 0):
        return STOP, STOP, 0, NOWHERE
    return element, element, count, end


@kernel
def next_value(data: Bytes, at: int, left: int, first: int, second: int) -> tuple[int, int]:
    """The type of the next of the values of a container, ``STOP`` for none, and where it stands."""
    if left >= 0:
        return STOP if left == 0 else second if left & 1 else first, at
    kind = TRUE
    # The truth values of a structure stand in the headers of its fields.
    while TRUE <= kind <= FALSE:
        if not 0 <= at < data.size:
            return STOP, NOWHERE
        kind, at = pass_field_header(data, at)
    return kind, at


@kernel
def end_of(data: Bytes, at: int, kind: int, levels: Levels) -> int:
    """Where the value of a wire type ends that starts at ``at``; ``NOWHERE`` if it does not.

    ``levels`` is room for what it stands in, for values as deep as there are rows.  One loop,
    because every value of a footer comes by here, and a call costs more than most of them.
    """
    depth, left, first, second = 0, 0, STOP, STOP
    while True:
        if I16_TYPE <= kind <= I64_TYPE:
            start = at
            while at < data.size and data[at] >= 0x80:
                at += 1
            at = at + 1 if at - start < longest(kind) else NOWHERE
        elif kind == BINARY:
            length, at = read_size(data, at)
            at = at + length if at >= 0 else NOWHERE
        elif LIST <= kind <= STRUCT:
            if depth == levels.shape[0]:
                return NOWHERE
            levels[depth, 0], levels[depth, 1], levels[depth, 2] = left, first, second
            depth += 1
            first, second, left, at = enter_container(data, at, kind)
        else:
            at += size_of(kind)
        kind = STOP
        while 0 <= at <= data.size and depth > 0 and kind == STOP:
            kind, at = next_value(data, at, left, first, second)
            left -= left > 0
            if kind == STOP:
                depth -= 1
                left, first, second = levels[depth, 0], levels[depth, 1], levels[depth, 2]
        # A type may be there, and no place: what is below zero is the end of an array, too.
        if kind == STOP or at < 0:
            return at if 0 <= at <= data.size else NOWHERE


@kernel
def new_levels() -> Levels:
    """Room for :func:`end_of`."""
    return np.empty((MAX_DEPTH, 3), np.int64)


@kernel
def enter(data: Bytes, at: int, kind: int, found: Numbers, place: int, levels: Levels) -> int:
    """Enter a value: a number itself, of anything else where it starts and ends; where it ends."""
    if I16_TYPE <= kind <= I64_TYPE:
        number, end = read_varint(data, at)
        found[place] = signed(number)
        bits = min(16 << (kind - I16_TYPE), 63)
        return end if number >> bits == 0 and end - at <= longest(kind) else NOWHERE
    end = end_of(data, at, kind, levels)
    found[place] = read_varint(data, at)[1] if kind == BINARY else at
    found[place + 1] = end
    return end


@kernel
def looked_up(table: Table, structure: int, field: int, kind: int) -> int:
    """What to do with a field, as its table says; ``UNFIT`` if it has another type than wanted."""
    if not 0 <= field < FIELD_IDS or table[structure, field, 0] == STOP:
        return 0
    return I64(table[structure, field, 1]) if table[structure, field, 0] == kind else UNFIT


@kernel
def read_structure(data: Bytes, at: int, table: Table, found: Numbers, levels: Levels) -> int:
    """Enter the fields that ``table`` wants of the structure at ``at``; where that ends.

    A field of another type than the wanted one ends it all: ``NOWHERE``.
    """
    above = np.empty((table.shape[0], 2), np.int64)
    depth, structure, last, end = 0, 0, 0, at
    while end >= 0:
        kind, last, end = read_field_header(data, end, last)
        if end < 0 or (kind == STOP and depth == 0):
            return end
        if kind == STOP:
            depth -= 1
            structure, last = above[depth, 0], above[depth, 1]
            continue
        action = looked_up(table, structure, last, kind)
        if action == UNFIT or (action < 0 and depth == above.shape[0]):
            return NOWHERE
        if action < 0:
            above[depth, 0], above[depth, 1] = structure, last
            depth, structure, last = depth + 1, -action, 0
        elif action > 0:
            end = enter(data, end, kind, found, action - 1, levels)
        elif kind > FALSE:
            end = end_of(data, end, kind, levels)
    return end


@brief_kernel
def read_structures(
    data: Bytes,
    starts: Numbers,
    ends: Numbers,
    table: Table,
    found: Numbers,
) -> bool:
    """:func:`read_structure` of each structure in ``starts``; whether all of them are whole.

    Each has the bytes up to its place in ``ends``, and need not take all of them.
    """
    found[:] = ABSENT
    levels = new_levels()
    for i in range(starts.size):
        own = data[: max(ends[i], 0)]
        if starts[i] < 0 or read_structure(own, starts[i], table, found[i], levels) < 0:
            return False
    return True
