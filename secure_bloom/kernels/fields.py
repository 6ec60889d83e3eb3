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

from secure_bloom.kernels.compilation import I64, brief_kernel, inlined, kernel

U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
#: For each structure and field id: the wire type that is wanted, and what to do with its value.
#: A number below zero stands for another structure of the table, one above for a place among the
#: results, counted from 1; wire type 0 passes the field over.
Table: TypeAlias = NDArray[np.int16]

#: For each level of nesting how many structures are left.
Counts: TypeAlias = Numbers

#: Where structures end that do not, and the value of fields that are not there.
NOWHERE: Final = -1
ABSENT: Final = -(2**63)
#: The answer for a field that is not what a table wants.
UNFIT: Final = -(2**62)
MAX_DEPTH: Final = 32
#: Field ids of a table; higher ones are passed over.
FIELD_IDS: Final = 32
#: More bytes than a buffer has, of one value, and a place that is in none.
TOO_LARGE: Final = 2**40
BEYOND: Final = np.uint64(2**62)
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
#: Below it the first byte of a field has no id, which then stands behind it.
LONG_ID: Final = 16
#: Below it the first byte of a length is all of it.
LONG_LENGTH: Final = 0x80


@inlined
def longest(kind: int) -> int:
    """Bytes that a number of a wire type takes at most: 3, 5 or 10 for 16, 32 and 64 bits."""
    return max(ID_BYTES, 5 * (kind - I16_TYPE))


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


@inlined
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


@inlined
def size_of(kind: int) -> int:
    """Bytes of a value that says nothing of its size; a truth value takes one, as in lists."""
    if TRUE <= kind <= BYTE:
        return 1
    if kind == DOUBLE:
        return 8
    return 16 if kind == UUID else TOO_LARGE


@inlined
def end_of_number(data: Bytes, at: U64, limit: int) -> U64:
    """Where the number at ``at`` ends, which takes so many bytes at most; else ``BEYOND``."""
    end, size = at, U64(data.size)
    while end < size and data[end] >= 0x80:
        end += U64(1)
    return end + U64(1) if end - at < U64(limit) else BEYOND


@kernel
def end_of_bytes(data: Bytes, at: U64) -> U64:
    """Where the bytes end whose length stands at ``at``; else ``BEYOND``."""
    length, end = read_size(data, I64(at))
    return U64(end + length) if end >= 0 else BEYOND


@kernel
def end_of_scalars(data: Bytes, at: U64, kind: int, count: int) -> U64:
    """Where so many values end that have no others in them: beyond the data, if they do not."""
    end = at if kind <= UUID else BEYOND
    if I16_TYPE <= kind <= I64_TYPE:
        limit = longest(kind)
        for _ in range(count):
            end = end_of_number(data, end, limit)
    elif kind == BINARY:
        for _ in range(count):
            is_short = end < U64(data.size) and data[end] < LONG_LENGTH
            end = end + U64(1) + U64(data[end]) if is_short else end_of_bytes(data, end)
    else:
        end += U64(count * size_of(kind))
    return end


@kernel
def end_of_structures(  # noqa: C901  (see below)
    data: Bytes, at: int, count: int, left: Counts
) -> int:
    """Where the last of one or more structures ends that follow one another; or ``NOWHERE``.

    One loop that calls little: every field of a footer comes by here, and a function that is given
    an array to hand on takes longer than most of them.
    """
    depth, end, size = 0, U64(at), U64(data.size)
    left[0] = count
    while end < size:
        head = data[end]
        kind = I64(head & 15)
        end += U64(1)
        if head < LONG_ID and kind != STOP:
            end = end_of_number(data, end, ID_BYTES)
        if kind == STOP:
            left[depth] -= 1
            if left[depth] == 0:
                depth -= 1
                if depth < 0:
                    return I64(end)
        elif I16_TYPE <= kind <= I64_TYPE:
            end = end_of_number(data, end, longest(kind))
        elif kind == BINARY:
            is_short = end < size and data[end] < LONG_LENGTH
            end = end + U64(1) + U64(data[end]) if is_short else end_of_bytes(data, end)
        elif kind == STRUCT:
            depth += 1
            if depth == left.size:
                return NOWHERE
            left[depth] = 1
        elif LIST <= kind <= SET:
            element, count, start = read_list_header(data, I64(end))
            if start < 0 or depth + 1 == left.size:
                return NOWHERE
            end = U64(start)
            if element != STRUCT:
                end = end_of_scalars(data, end, element, count)
            elif count > 0:
                depth += 1
                left[depth] = count
        elif kind > FALSE:
            end += U64(size_of(kind))
    return NOWHERE


@kernel
def end_of(data: Bytes, at: int, kind: int, left: Counts) -> int:
    """Where the value of a wire type ends that starts at ``at``; ``NOWHERE`` if it does not.

    Maps, and lists of lists, which stand in no footer, end nowhere as well.  ``left`` is room for
    counts, for structures as deep as there are numbers.
    """
    count = 1
    if LIST <= kind <= SET:
        kind, count, at = read_list_header(data, at)
    if at < 0:
        return NOWHERE
    if kind == STRUCT and count > 0:
        return end_of_structures(data, at, count, left)
    end = end_of_scalars(data, U64(at), kind, count)
    return I64(end) if end <= U64(data.size) else NOWHERE


@kernel
def new_counts() -> Counts:
    """Room for :func:`end_of`."""
    return np.empty(MAX_DEPTH, np.int64)


@kernel
def enter(data: Bytes, at: int, kind: int, found: Numbers, place: int, left: Counts) -> int:
    """Enter a value: a number itself, of anything else where it starts and ends; where it ends."""
    if I16_TYPE <= kind <= I64_TYPE:
        number, end = read_varint(data, at)
        found[place] = signed(number)
        bits = min(16 << (kind - I16_TYPE), 63)
        return end if number >> bits == 0 and end - at <= longest(kind) else NOWHERE
    end = end_of(data, at, kind, left)
    found[place] = read_varint(data, at)[1] if kind == BINARY else at
    found[place + 1] = end
    return end


@inlined
def looked_up(table: Table, structure: int, field: int, kind: int) -> int:
    """What to do with a field, as its table says; ``UNFIT`` if it has another type than wanted."""
    if not 0 <= field < FIELD_IDS or table[structure, field, 0] == STOP:
        return 0
    return I64(table[structure, field, 1]) if table[structure, field, 0] == kind else UNFIT


@kernel
def read_structure(data: Bytes, at: int, table: Table, found: Numbers, left: Counts) -> int:
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
            end = enter(data, end, kind, found, action - 1, left)
        elif kind > FALSE:
            end = end_of(data, end, kind, left)
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
    left = new_counts()
    for i in range(starts.size):
        own = data[: max(ends[i], 0)]
        if starts[i] < 0 or read_structure(own, starts[i], table, found[i], left) < 0:
            return False
    return True
