"""The ``bitmap`` index, version 1: the values of a column, and the rows that have each.

    version (1) | rows (4) | values (4) | has null (1) | [place of its bitmap (4)]
    each value: the value | place of its bitmap (4)
    bitmaps

A number is big-endian in the width of its type, a text stands behind its length (4).  A place
counts from the first bitmap; a negative one stands for the single row ``-1 - place``.  To tell that
a value is nowhere in a file the list alone is enough.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError
from secure_bloom.paimon.data_types import Hashed
from secure_bloom.paimon.version_0_9 import roaring

_VERSION = 1
_HEAD = struct.Struct(">Biib")
_INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueList:
    """``count`` distinct values of a column of ``rows`` rows.

    ``null_place`` is where the rows without a value are told; None where all have one.
    """

    rows: int
    count: int
    null_place: int | None
    content: memoryview

    @property
    def has_null(self) -> bool:
        """Whether some row has no value."""
        return self.null_place is not None

    def listed(self, sought: frozenset[Hashed]) -> set[Hashed]:
        """Those of the values, all of one type, that are listed: one pass over the list.

        FormatError where the list is not of their type.
        """
        wanted = {_listed_form(value): value for value in sought}
        found: set[Hashed] = set()
        for start, end in self._places(sought):
            form = bytes(self.content[start:end])
            if form in wanted:
                found.add(wanted[form])
            if len(found) == len(wanted):
                break
        return found

    def rows_with(self, sought: frozenset[Hashed]) -> int:
        """The rows that have one of the values, all of one type: bit ``i`` is row ``i``."""
        roaring.require_rows(self.rows)
        wanted = {_listed_form(value) for value in sought}
        bitmaps = 0
        # The last place of a value counts, as in Paimon's map: however often the list has it, there
        # is one bitmap to read for each value that is sought.
        places: dict[bytes, int] = {}
        for start, end in self._places(sought):
            bitmaps = end + _INT.size
            form = bytes(self.content[start:end])
            if form in wanted:
                (places[form],) = _INT.unpack_from(self.content, end)
        found = 0
        for place in places.values():
            found |= self._rows_at(place, bitmaps)
        return found

    def null_rows(self, examples: frozenset[Hashed]) -> int:
        """The rows without a value, as :meth:`rows_with`; by values of the list's type."""
        roaring.require_rows(self.rows)
        if self.null_place is None:
            return 0
        bitmaps = 0
        for _, end in self._places(examples):
            bitmaps = end + _INT.size
        return self._rows_at(self.null_place, bitmaps)

    def other_rows(self, rows: int) -> int:
        """All rows but these."""
        roaring.require_rows(self.rows)
        return ((1 << self.rows) - 1) & ~rows

    def _rows_at(self, place: int, bitmaps: int) -> int:
        if place >= 0:
            return roaring.read_rows(self.content[bitmaps + place :], self.rows)
        row = -1 - place
        if row >= self.rows:
            raise FormatError(f"a bitmap index tells of row {row}, it has {self.rows}")
        return 1 << row

    def _places(self, sought: frozenset[Hashed]) -> Iterator[tuple[int, int]]:
        """Where each value starts and ends, given some of the same type; none where given none."""
        any_one = next(iter(sought), None)
        if any_one is None:
            return iter(())
        if isinstance(any_one.content, bytes):
            return self._texts()
        return self._numbers(any_one.width)

    def _numbers(self, width: int) -> Iterator[tuple[int, int]]:
        step = width + _INT.size
        if self.count * step > len(self.content):
            raise FormatError(f"a bitmap index ends within its {self.count} values")
        for start in range(0, self.count * step, step):
            yield start, start + width

    def _texts(self) -> Iterator[tuple[int, int]]:
        at = 0
        for _ in range(self.count):
            start = at + _INT.size
            length = int.from_bytes(self.content[at:start], "big", signed=True)
            at = start + length + _INT.size
            if length < 0 or at > len(self.content):
                raise FormatError(f"a bitmap index ends within its {self.count} values")
            yield start, start + length


def _listed_form(value: Hashed) -> bytes:
    if isinstance(value.content, bytes):
        return value.content
    return value.content.to_bytes(value.width, "big", signed=True)


def read_value_list(body: bytes | memoryview) -> ValueList | None:
    """The list of a bitmap index; None for one of another version."""
    view = memoryview(body)
    if len(view) < 1 or view[0] != _VERSION:
        return None
    if len(view) < _HEAD.size:
        raise FormatError(f"a bitmap index has {len(view)} bytes, its head takes {_HEAD.size}")
    _, rows, count, has_null = _HEAD.unpack_from(view)
    start = _HEAD.size + (_INT.size if has_null else 0)
    if count < 0 or count * _INT.size > len(view) - start:
        raise FormatError(f"a bitmap index lists {count} values in {len(view)} bytes")
    null_place = _INT.unpack_from(view, _HEAD.size)[0] if has_null else None
    return ValueList(rows=rows, count=count, null_place=null_place, content=view[start:])
