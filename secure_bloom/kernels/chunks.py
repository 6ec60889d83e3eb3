"""Compare the bounds of many column chunks with probe values, in one call.

Each chunk is a row of numbers: the fields of its metadata, in the slots named here.
"""

from __future__ import annotations

from typing import Final

from secure_bloom.kernels.compilation import I64, brief_kernel, kernel
from secure_bloom.kernels.fields import (
    ABSENT,
    Bytes,
    Numbers,
    read_list_header,
    read_varint,
    signed,
)

NUM_VALUES: Final = 0
DATA_PAGE_OFFSET: Final = 1
DICTIONARY_PAGE_OFFSET: Final = 2
BLOOM_FILTER_OFFSET: Final = 3
BLOOM_FILTER_LENGTH: Final = 4
NULL_COUNT: Final = 5
# Two slots each: start and end of bytes.  The slots of an upper bound follow those of its lower.
MIN_VALUE: Final = 6
MAX_VALUE: Final = 8
MIN: Final = 10
MAX: Final = 12
PATH_IN_SCHEMA: Final = 14
FILE_PATH: Final = 16
CRYPTO_METADATA: Final = 18
ENCRYPTED_COLUMN_METADATA: Final = 20
DEFINITION_LEVEL_HISTOGRAM: Final = 22
PLACES: Final = 24

#: The start of a run of values for a chunk that this module does not decide: the steps do.
UNDECIDED: Final = -1


@kernel
def compared(
    a: Bytes,
    a_start: int,
    a_end: int,
    b: Bytes,
    b_start: int,
    b_end: int,
    is_little: bool,
    is_signed: bool,
) -> int:
    """Below 0 if the first is less, 0 if they are equal, above if it is greater.

    Bytes compare unsigned from the first on, and a prefix comes before what it begins.  With
    ``is_little`` they are numbers whose highest byte stands last; with ``is_signed`` the highest
    bit is a sign.
    """
    for i in range(min(a_end - a_start, b_end - b_start)):
        x = I64(a[a_end - 1 - i] if is_little else a[a_start + i])
        y = I64(b[b_end - 1 - i] if is_little else b[b_start + i])
        if x != y:
            return y - x if i == 0 and is_signed and (x ^ y) & 0x80 else x - y
    return (a_end - a_start) - (b_end - b_start)


@kernel
def are_same(data: Bytes, start: int, end: int, other: Bytes) -> bool:
    """Whether ``data[start:end]`` is ``other``."""
    return start >= 0 and compared(data, start, end, other, 0, other.size, False, False) == 0


@kernel
def is_unusual(data: Bytes, chunk: Numbers, path: Bytes, rows: int) -> bool:
    """Whether the steps must look: data in another file, another column, not a value a row."""
    if chunk[FILE_PATH] != ABSENT or chunk[NUM_VALUES] != rows:
        return True
    return not are_same(data, chunk[PATH_IN_SCHEMA], chunk[PATH_IN_SCHEMA + 1], path)


@kernel
def is_filter_next(chunk: Numbers) -> bool:
    """Whether a Bloom filter is asked next: there is one, and no dictionary that is smaller."""
    if chunk[BLOOM_FILTER_OFFSET] < 0 or chunk[BLOOM_FILTER_LENGTH] < 0:
        return False
    if chunk[DATA_PAGE_OFFSET] < 0 or chunk[DICTIONARY_PAGE_OFFSET] <= 0:
        return bool(chunk[DATA_PAGE_OFFSET] >= 0)
    size = chunk[DATA_PAGE_OFFSET] - chunk[DICTIONARY_PAGE_OFFSET]
    return bool(size <= 0 or size >= chunk[BLOOM_FILTER_LENGTH])


@kernel
def place_of_bounds(chunk: Numbers, has_order: bool, has_old_order: bool) -> int:
    """The slot of the bounds that can be trusted; below 0 where there are none."""
    if has_order and chunk[MIN_VALUE] >= 0 and chunk[MAX_VALUE] >= 0:
        return MIN_VALUE
    return MIN if has_old_order and chunk[MIN] >= 0 and chunk[MAX] >= 0 else -1


@kernel
def are_bounds(
    data: Bytes, chunk: Numbers, place: int, width: int, is_little: bool, is_signed: bool
) -> bool:
    """Whether the bytes in the slots are two bounds in order, each as wide as the type."""
    if place < 0:
        return False
    low, low_end, high, high_end = chunk[place : place + 4]
    if width > 0 and (low_end - low != width or high_end - high != width):
        return False
    return compared(data, low, low_end, data, high, high_end, is_little, is_signed) <= 0


@kernel
def are_nulls(data: Bytes, chunk: Numbers) -> bool:
    """Whether all values are said to be null, and no bound and no level of a value says else."""
    if chunk[NULL_COUNT] != chunk[NUM_VALUES]:
        return False
    bounds = max(chunk[MIN_VALUE], chunk[MAX_VALUE], chunk[MIN], chunk[MAX])
    at = chunk[DEFINITION_LEVEL_HISTOGRAM]
    if bounds >= 0 or at < 0:
        return bool(bounds < 0)
    _, levels, at = read_list_header(data, at)
    total, last = 0, 0
    for _ in range(levels):
        if at < 0:
            return False
        number, at = read_varint(data, at)
        last = signed(number)
        total += last
    return bool(at >= 0 and last == 0 and (levels == 0 or total == chunk[NUM_VALUES]))


@kernel
def count_below(
    values: Bytes,
    offsets: Numbers,
    data: Bytes,
    start: int,
    end: int,
    or_same: bool,
    is_little: bool,
    is_signed: bool,
) -> int:
    """How many of the ascending values are less than ``data[start:end]``, or the same."""
    low, high = 0, I64(offsets.size - 1)
    while low < high:
        middle = (low + high) >> 1
        order = compared(
            values, offsets[middle], offsets[middle + 1], data, start, end, is_little, is_signed
        )
        if order < 0 or (or_same and order == 0):
            low = middle + 1
        else:
            high = middle
    return low


@brief_kernel
def leave(
    data: Bytes,
    chunks: Numbers,
    path: Bytes,
    values: Bytes,
    offsets: Numbers,
    rows: Numbers,
    width: int,
    is_little: bool,
    is_signed: bool,
    has_order: bool,
    has_old_order: bool,
    may_be_null: bool,
    left: Numbers,
) -> None:
    """Enter into ``left`` the run of values, (start, end), that the bounds of each chunk leave.

    The values, ``values[offsets[i]:offsets[i + 1]]``, ascend.  ``rows`` are those of each chunk.
    ``has_order``: ``min_value`` and ``max_value`` are in the order of the values;
    ``has_old_order``: so are ``min`` and ``max``; ``may_be_null``: the column is not a required
    one.  The run of a chunk that the steps must look at starts with ``UNDECIDED``; an empty run
    that starts at 0 or later rules the chunk out.
    """
    for i in range(left.shape[0]):
        chunk = chunks[i]
        left[i, 0], left[i, 1] = UNDECIDED, 0
        if is_unusual(data, chunk, path, rows[i]):
            continue
        start, end = 0, I64(offsets.size - 1)
        place = place_of_bounds(chunk, has_order, has_old_order)
        if may_be_null and are_nulls(data, chunk):
            end = 0
        elif are_bounds(data, chunk, place, width, is_little, is_signed):
            low, low_end, high, high_end = chunk[place : place + 4]
            start = count_below(values, offsets, data, low, low_end, False, is_little, is_signed)
            end = count_below(values, offsets, data, high, high_end, True, is_little, is_signed)
        if start == end or is_filter_next(chunk):
            left[i, 0], left[i, 1] = start, end
