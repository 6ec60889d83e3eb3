"""The rows that a ``bitmap`` index has for values, as one number: bit ``i`` is row ``i``."""

from __future__ import annotations

from secure_bloom.errors import FormatError
from secure_bloom.paimon.bitmap import PLACE, ValueList, listed_form
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.version_0_9 import roaring


def rows_with(listed: ValueList, values: frozenset[Hashed]) -> int:
    """Return the rows that have one of the values, which are all of one type."""
    roaring.require_rows(listed.rows)
    wanted = {listed_form(value) for value in values}
    bitmaps = 0
    # If the list has a value twice, its last place counts, as in Paimon's map.  So at most one
    # bitmap is read for each wanted value, however often a hostile list repeats the value.
    places: dict[bytes, int] = {}
    for start, end in listed.spans(values):
        bitmaps = end + PLACE.size
        form = bytes(listed.content[start:end])
        if form in wanted:
            (places[form],) = PLACE.unpack_from(listed.content, end)
    found = 0
    for place in places.values():
        found |= _rows_at(listed, place, bitmaps)
    return found


def null_rows(listed: ValueList, examples: frozenset[Hashed]) -> int:
    """Return the rows without a value; the width of the ``examples`` says where the list ends."""
    # The rows become one number of so many bits, and their count is the file's.
    roaring.require_rows(listed.rows)
    if listed.null_place is None:
        return 0
    bitmaps = 0
    for _, end in listed.spans(examples):
        bitmaps = end + PLACE.size
    return _rows_at(listed, listed.null_place, bitmaps)


def other_rows(listed: ValueList, rows: int) -> int:
    """Return all rows but ``rows``."""
    roaring.require_rows(listed.rows)
    return ((1 << listed.rows) - 1) & ~rows


def _rows_at(listed: ValueList, place: int, bitmaps: int) -> int:
    if place >= 0:
        return roaring.read_rows(listed.content[bitmaps + place :], listed.rows)
    # A negative place is the row itself, of a value that a single row has.
    row = -1 - place
    if row >= listed.rows:
        raise FormatError(f"a bitmap index names row {row}, it has {listed.rows}")
    return 1 << row
