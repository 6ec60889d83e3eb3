"""Scan a footer once: its row groups as numbers, and the offsets of all its parts."""

from __future__ import annotations

from typing import Final

import numpy as np

from secure_bloom.kernels.compilation import brief_kernel, kernel
from secure_bloom.kernels.fields import (
    ABSENT,
    FALSE,
    I16_TYPE,
    I64_TYPE,
    LIST,
    NOWHERE,
    STOP,
    STRUCT,
    Bytes,
    Counts,
    Numbers,
    end_of,
    end_of_structures,
    enter,
    new_counts,
    read_field_header,
    read_list_header,
)

#: Field ids of a FileMetaData; PARTS is one more than the highest.
SCHEMA: Final = 2
ROW_GROUPS: Final = 4
PARTS: Final = 10
#: Field ids of a RowGroup.
COLUMNS: Final = 1
TOTAL_BYTE_SIZE: Final = 2
NUM_ROWS: Final = 3
ORDINAL: Final = 7
NUMBERS: Final = 8
#: The fewest bytes of a RowGroup beside its chunks: fields 1, 2 and 3, and its end.
ROW_GROUP_BYTES: Final = 7


@kernel
def outline_list(data: Bytes, at: int, places: Numbers, left: Counts) -> int:
    """Write the offset of each structure of a list into ``places``; return where the list ends."""
    kind, count, end = read_list_header(data, at)
    if kind != STRUCT or count != places.size:
        return NOWHERE
    for i in range(count):
        places[i] = end
        if end >= 0:
            end = end_of_structures(data, end, 1, left)
    return end


@kernel
def is_whole(numbers: Numbers) -> bool:
    """Whether a RowGroup has its required fields."""
    return bool(
        numbers[COLUMNS] >= 0 and numbers[NUM_ROWS] >= 0 and numbers[TOTAL_BYTE_SIZE] != ABSENT
    )


@kernel
def outline_row_group(data: Bytes, at: int, numbers: Numbers, places: Numbers, left: Counts) -> int:
    """Enter the numbers of a RowGroup by field id and the offsets of its chunks; return its end."""
    numbers[:] = ABSENT
    last, end = 0, at
    while end >= 0:
        kind, last, end = read_field_header(data, end, last)
        if end < 0 or kind == STOP:
            return end if end >= 0 and is_whole(numbers) else NOWHERE
        if last == COLUMNS and kind == LIST:
            numbers[COLUMNS] = end
            end = outline_list(data, end, places, left)
        elif (kind == I64_TYPE and TOTAL_BYTE_SIZE <= last <= NUM_ROWS) or (
            kind == I16_TYPE and last == ORDINAL
        ):
            end = enter(data, end, kind, numbers, last, left)
        elif kind > FALSE:
            end = end_of(data, end, kind, left)
    return end


@kernel
def outline_row_groups(
    data: Bytes, at: int, numbers: Numbers, places: Numbers, left: Counts
) -> int:
    """:func:`outline_row_group` of each of a list, behind whose header ``at`` is; where it ends."""
    end = at
    for i in range(numbers.shape[0]):
        if end >= 0:
            end = outline_row_group(data, end, numbers[i], places[i], left)
    return end


@kernel
def count_row_groups(data: Bytes, at: int, kind: int, columns: int) -> tuple[int, int]:
    """How many row groups a list has, and the offset of the first."""
    element, count, end = read_list_header(data, at)
    if end < 0 or kind != LIST or element != STRUCT:
        return 0, NOWHERE
    # A chunk takes a byte or more: so the arrays cannot get much larger than the footer is.
    is_too_long = count * (columns + ROW_GROUP_BYTES) > data.size - end
    return (0, NOWHERE) if is_too_long else (count, end)


@brief_kernel
def outline(data: Bytes, at: int, columns: int) -> tuple[int, Numbers, Numbers, Numbers]:
    """Scan a FileMetaData of ``columns`` columns behind its schema, which ends at ``at``.

    Returns its end; a row of numbers for each row group, indexed by field id; a row of offsets for
    each row group, one for each of its chunks; and wire type, start and end of the other fields,
    by their ids.  The end is ``NOWHERE`` where anything is unusual.
    """
    numbers, places = np.empty((0, NUMBERS), np.int64), np.empty((0, 0), np.int64)
    parts = np.full((PARTS, 3), ABSENT)
    left = new_counts()
    last, end = SCHEMA, at
    while end >= 0:
        kind, last, end = read_field_header(data, end, last)
        if end < 0 or kind == STOP:
            break
        start = end
        if last == ROW_GROUPS:
            count, end = count_row_groups(data, start, kind, columns)
            numbers = np.empty((count, NUMBERS), np.int64)
            places = np.empty((count, columns), np.int64)
            end = outline_row_groups(data, end, numbers, places, left)
        elif kind > FALSE:
            end = end_of(data, start, kind, left)
        if 0 < last < PARTS:
            parts[last, 0], parts[last, 1], parts[last, 2] = kind, start, end
    return end, numbers, places, parts
