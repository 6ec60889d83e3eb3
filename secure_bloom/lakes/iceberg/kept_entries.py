"""Keep entries of manifests in a quarter of the memory that pyiceberg takes for them.

A run that commits keeps the entries of all files of a table.  Almost all of an entry are its
numbers and bounds by column, which are looked at for few files.  So they are kept as bytes, from
which they are made again each time, and what they take is known:

    a map of numbers    its keys, its values: two arrays, of integers as small as they can be
    a map of bounds     its keys, the lengths of the bounds, all bounds one after the other
"""

from __future__ import annotations

import marshal
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from pyiceberg.manifest import DataFile

_PARTITION: Final = 3
#: The positions from ``column_sizes`` to ``equality_ids``: maps by column, key metadata, and lists.
_FIRST, _END = 6, 15
#: Types of arrays for numbers that are not negative, from the smallest on.
_UNSIGNED: Final = ("B", "H", "I")
#: What the objects of an entry take beside their fields.
_OBJECT_BYTES: Final = 380


class KeptFile(DataFile):  # type: ignore[misc, unused-ignore]
    """The record of a data file or delete file, which does not change once it is packed."""

    _packed: bytes | None = None

    def pack(self) -> int:
        """Keep the maps and lists as bytes. Return how many bytes the entry takes."""
        found = [_packed(self._data[position]) for position in range(_FIRST, _END)]
        self._packed = marshal.dumps(found)
        self._data[_FIRST:_END] = [None] * (_END - _FIRST)
        fields = (self._packed, *self._data, *self._data[_PARTITION]._data)
        return _OBJECT_BYTES + sum(map(sys.getsizeof, fields))

    def __getitem__(self, position: int) -> Any:
        """Return a field by its position."""
        if self._packed is None or not _FIRST <= position < _END:
            return self._data[position]
        # Not bytes of a file: `pack` has made them.
        return _unpacked(marshal.loads(self._packed)[position - _FIRST])  # noqa: S302

    def __setitem__(self, position: int, value: Any) -> None:
        """Set a field. Raises TypeError for a record that is packed."""
        if self._packed is not None:
            raise TypeError("the record of a kept entry does not change")
        self._data[position] = value

    column_sizes = property(lambda self: self[6])
    value_counts = property(lambda self: self[7])
    null_value_counts = property(lambda self: self[8])
    nan_value_counts = property(lambda self: self[9])
    lower_bounds = property(lambda self: self[10])
    upper_bounds = property(lambda self: self[11])
    key_metadata = property(lambda self: self[12])
    split_offsets = property(lambda self: self[13])
    equality_ids = property(lambda self: self[14])


def _packed(value: Any) -> Any:
    """Return a field as it is kept: maps as columns, all else as it is."""
    if not isinstance(value, Mapping):
        return value
    values = list(value.values())
    try:
        if not all(isinstance(it, bytes) for it in values):
            return _numbers(value), _numbers(values)
        return _numbers(value), _numbers(map(len, values)), b"".join(values)
    except TypeError:
        # A writer's own type of a map, for example with empty values.
        return dict(value)


def _unpacked(found: Any) -> Any:
    """Return a field that was kept by :func:`_packed`."""
    if not isinstance(found, tuple):
        return found
    keys, values, *joined = found
    numbers: Sequence[Any] = array(*values)
    for together in joined:
        ends = pairwise(accumulate(numbers, initial=0))
        numbers = [together[start:end] for start, end in ends]
    return dict(zip(array(*keys), numbers, strict=True))


def _numbers(values: Iterable[int]) -> tuple[str, bytes]:
    """Return the type of an array of these numbers, and its bytes."""
    given = list(values)
    kind = next((it for it in _UNSIGNED if _fits(given, it)), "q")
    return kind, array(kind, given).tobytes()


def _fits(numbers: Sequence[int], kind: str) -> bool:
    size = 8 * array(kind).itemsize
    return not numbers or (min(numbers) >= 0 and max(numbers) < 1 << size)
