"""The ``bitmap`` index, version 1: the values of a column, and the rows that have each.

    version (1) | rows (4) | values (4) | has null (1) | [place of its bitmap (4)]
    each value: the value | place of its bitmap (4)
    bitmaps

A number is big-endian in the width of its type.  A text comes after its length (4).  A place counts
from the first bitmap. A negative place means the single row ``-1 - place``.

The list alone shows that a value is nowhere in the file.  Only the rules of Paimon 0.9 need the
bitmaps (:mod:`~secure_bloom.paimon.version_0_9.decision`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError
from secure_bloom.paimon.data_types import Hashed

_VERSION = 1
_HEAD = struct.Struct(">Biib")
#: The place of a bitmap.
PLACE = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueList:
    """``count`` distinct values of a column of ``rows`` rows.

    ``null_place`` is the place of the bitmap of nulls, or None if every row has a value.
    """

    rows: int
    count: int
    null_place: int | None
    content: memoryview

    @property
    def has_null(self) -> bool:
        """Whether some row has no value."""
        return self.null_place is not None

    def listed(self, values: frozenset[Hashed]) -> set[Hashed]:
        """Return those of the values, all of one type, that are in the list. The list is read once.

        Raises FormatError if the list is not of their type.
        """
        wanted = {listed_form(value): value for value in values}
        found: set[Hashed] = set()
        for start, end in self.spans(values):
            form = bytes(self.content[start:end])
            if form in wanted:
                found.add(wanted[form])
            if len(found) == len(wanted):
                break
        return found

    def spans(self, examples: frozenset[Hashed]) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each listed value, whose type is known from ``examples``.

        Yields nothing without an example.
        """
        any_one = next(iter(examples), None)
        if any_one is None:
            return iter(())
        if isinstance(any_one.content, bytes):
            return self._texts()
        return self._numbers(any_one.width)

    def _numbers(self, width: int) -> Iterator[tuple[int, int]]:
        step = width + PLACE.size
        if self.count * step > len(self.content):
            raise FormatError(f"a bitmap index ends within its {self.count} values")
        for start in range(0, self.count * step, step):
            yield start, start + width

    def _texts(self) -> Iterator[tuple[int, int]]:
        at = 0
        for _ in range(self.count):
            start = at + PLACE.size
            # Signed, as Java writes it: a negative length would lead backwards.
            length = int.from_bytes(self.content[at:start], "big", signed=True)
            at = start + length + PLACE.size
            if length < 0 or at > len(self.content):
                raise FormatError(f"a bitmap index ends within its {self.count} values")
            yield start, start + length


def listed_form(value: Hashed) -> bytes:
    """Return a value as it is in the list."""
    if isinstance(value.content, bytes):
        return value.content
    return value.content.to_bytes(value.width, "big", signed=True)


def read_value_list(body: bytes | memoryview) -> ValueList | None:
    """Return the list of a bitmap index, or None for another version of the index."""
    view = memoryview(body)
    # Later versions of Paimon write a version 2, so another number is no damage.
    if len(view) < 1 or view[0] != _VERSION:
        return None
    if len(view) < _HEAD.size:
        raise FormatError(f"a bitmap index has {len(view)} bytes, its head takes {_HEAD.size}")
    _, rows, count, has_null = _HEAD.unpack_from(view)
    # The place of the nulls' bitmap stands in the head only where there are nulls.
    start = _HEAD.size + (PLACE.size if has_null else 0)
    # The type, and so the width of a value, is not known yet, but each value has a place.
    if count < 0 or count * PLACE.size > len(view) - start:
        raise FormatError(f"a bitmap index lists {count} values in {len(view)} bytes")
    null_place = PLACE.unpack_from(view, _HEAD.size)[0] if has_null else None
    return ValueList(rows=rows, count=count, null_place=null_place, content=view[start:])
