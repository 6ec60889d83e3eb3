"""Read some fields of Thrift structures in place, and skip the others.  Thrift compact protocol.

Every number comes from a file, so each is checked against the bytes at hand, and structures nest
at most :data:`MAX_DEPTH` deep.  What the Thrift library refuses is refused here too.  So is a
structure whose field ids do not ascend: ascending ids mean that no field stands in it twice.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import I64, brief_kernel, inlined, kernel

U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
#: For each structure and field id: the wanted wire type, and an action.  Action -n: go on with
#: structure n of the table.  Action n: enter the value in slot n - 1 of the results.  Wire type 0:
#: skip the field.
Table: TypeAlias = NDArray[np.int16]

#: How many structures are left at each level of nesting.
Counts: TypeAlias = Numbers

#: NOWHERE: the end of a malformed structure.  ABSENT: the field is not present.
NOWHERE: Final = -1
ABSENT: Final = -(2**63)
#: The action for a field whose wire type is not the wanted one.
UNFIT: Final = -(2**62)
MAX_DEPTH: Final = 32
#: Field ids of a table; higher ones are passed over.
FIELD_IDS: Final = 32
#: TOO_LARGE: more bytes than any buffer has.  BEYOND: an offset behind the end of any buffer.
TOO_LARGE: Final = 2**40
BEYOND: Final = np.uint64(2**62)
#: More elements than this in one list, set or map are an attack on memory.
MAX_ELEMENTS: Final = 1 << 18
#: Field ids are 16-bit numbers with a sign, sizes are 32-bit: their varints are this long at most.
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
#: In place of a short list's count: the count follows as a varint.
LONG_LIST: Final = 15
#: A field header below this has no delta of ids: the id follows.
LONG_ID: Final = 16
#: A length below this takes one byte.
LONG_LENGTH: Final = 0x80


@inlined
def longest(kind: int) -> int:
    """Bytes that a number of a wire type takes at most: 3, 5 or 10 for 16, 32 and 64 bits."""
    return max(ID_BYTES, 5 * (kind - I16_TYPE))


@kernel
def read_varint(data: Bytes, at: int) -> tuple[int, int]:
    """The varint of at most 63 bits at ``at``, and its end."""
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
    """A count of things of a byte or more, and its end; NOWHERE if so many cannot follow."""
    number, end = read_varint(data, at)
    return number, end if number <= data.size - end and end - at <= SIZE_BYTES else NOWHERE


@kernel
def signed(number: int) -> int:
    """The signed number that a zigzag varint encodes."""
    return number >> 1 ^ -(number & 1)


@kernel
def read_list_header(data: Bytes, at: int) -> tuple[int, int, int]:
    """Element type and count of a list, and the offset of its first element."""
    if at >= data.size:
        return STOP, 0, NOWHERE
    head, end = I64(data[at]), at + 1
    count = head >> 4
    if count == LONG_LIST:
        count, end = read_size(data, end)
    return head & 15, count, end if count <= min(data.size - end, MAX_ELEMENTS) else NOWHERE


@inlined
def read_field_header(data: Bytes, at: int, last: int) -> tuple[int, int, int]:
    """Wire type and id of a field, and the offset of its value; ``last`` is the id before it."""
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
    """Bytes of a value of fixed size; a boolean takes one, as it does in lists."""
    if TRUE <= kind <= BYTE:
        return 1
    if kind == DOUBLE:
        return 8
    return 16 if kind == UUID else TOO_LARGE


@inlined
def end_of_number(data: Bytes, at: U64, limit: int) -> U64:
    """The end of the varint at ``at``; ``BEYOND`` if it has more than ``limit`` bytes."""
    end, size = at, U64(data.size)
    while end < size and data[end] >= 0x80:
        end += U64(1)
    return end + U64(1) if end - at < U64(limit) else BEYOND


@kernel
def end_of_bytes(data: Bytes, at: U64) -> U64:
    """The end of the BINARY whose length stands at ``at``; ``BEYOND`` if it does not fit."""
    length, end = read_size(data, I64(at))
    return U64(end + length) if end >= 0 else BEYOND


@kernel
def end_of_scalars(data: Bytes, at: U64, kind: int, count: int) -> U64:
    """The end of ``count`` values that nest nothing; behind the data if they do not fit."""
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
    """The end of ``count`` structures that follow one another, or ``NOWHERE``.

    One loop, with few calls: every field of a footer passes through here, and numba counts
    references whenever a function passes an array on, which takes longer than most fields do.
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
    """The end of a value of a wire type at ``at``; ``NOWHERE`` if it is malformed.

    Maps and lists of lists, which no footer has, are ``NOWHERE`` too.  ``left`` is scratch space:
    its size is the greatest depth of nesting.
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
    """Scratch space for :func:`end_of`."""
    return np.empty(MAX_DEPTH, np.int64)


@kernel
def enter(data: Bytes, at: int, kind: int, found: Numbers, place: int, left: Counts) -> int:
    """Enter a number, or the start and end of other values, in a slot; return the value's end."""
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
    """The action for a field by the table; ``UNFIT`` if its wire type is not the wanted one."""
    if not 0 <= field < FIELD_IDS or table[structure, field, 0] == STOP:
        return 0
    return I64(table[structure, field, 1]) if table[structure, field, 0] == kind else UNFIT


@kernel
def read_structure(data: Bytes, at: int, table: Table, found: Numbers, left: Counts) -> int:
    """Enter the fields that ``table`` wants of the structure at ``at``, and return its end.

    A field of another wire type than the wanted one makes it ``NOWHERE``.
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
    """Do :func:`read_structure` for each of ``starts``; return whether all are well-formed.

    Structure ``i`` may use the bytes up to ``ends[i]``, and need not use all of them.
    """
    found[:] = ABSENT
    left = new_counts()
    for i in range(starts.size):
        own = data[: max(ends[i], 0)]
        if starts[i] < 0 or read_structure(own, starts[i], table, found[i], left) < 0:
            return False
    return True
