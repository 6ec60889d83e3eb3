"""The values listed at the head of a ``bitmap`` index, version 1, and whether it has NULL.

    version (1) | rows (4) | values (4) | has null (1) | [place of its bitmap (4)]
    each value: the value | place of its bitmap (4)
    bitmaps

A number is big-endian in the width of its type, a text stands behind its length (4).  To tell that
a value is nowhere in a file the list alone is enough; the bitmaps are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.errors import FormatError
from secure_bloom.paimon.types import Hashed

_VERSION = 1
_HEAD = struct.Struct(">Biib")
_INT = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueList:
    """``count`` distinct values of a column, and whether it has NULL."""

    count: int
    has_null: bool
    content: memoryview

    def listed(self, sought: frozenset[Hashed]) -> set[Hashed]:
        """Those of the values, all of one type, that are listed: one pass over the list.

        FormatError where the list is not of their type.
        """
        wanted = {_listed_form(value): value for value in sought}
        found: set[Hashed] = set()
        for form in self._forms(sought):
            if form in wanted:
                found.add(wanted[form])
            if len(found) == len(wanted):
                break
        return found

    def _forms(self, sought: frozenset[Hashed]) -> Iterator[bytes]:
        any_one = next(iter(sought), None)
        if any_one is None:
            return iter(())
        if isinstance(any_one.content, bytes):
            return self._texts()
        return self._numbers(any_one.width)

    def _numbers(self, width: int) -> Iterator[bytes]:
        step = width + _INT.size
        if self.count * step > len(self.content):
            raise FormatError(f"a bitmap index ends within its {self.count} values")
        for place in range(0, self.count * step, step):
            yield bytes(self.content[place : place + width])

    def _texts(self) -> Iterator[bytes]:
        at = 0
        for _ in range(self.count):
            start = at + _INT.size
            length = int.from_bytes(self.content[at:start], "big", signed=True)
            at = start + length + _INT.size
            if length < 0 or at > len(self.content):
                raise FormatError(f"a bitmap index ends within its {self.count} values")
            yield bytes(self.content[start : start + length])


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
    _, _, count, has_null = _HEAD.unpack_from(view)
    start = _HEAD.size + (_INT.size if has_null else 0)
    if count < 0 or count * _INT.size > len(view) - start:
        raise FormatError(f"a bitmap index lists {count} values in {len(view)} bytes")
    return ValueList(count=count, has_null=bool(has_null), content=view[start:])
