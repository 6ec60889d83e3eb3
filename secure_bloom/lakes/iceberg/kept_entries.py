"""Keep entries of manifests in half of the memory that pyiceberg takes for them.

A run that commits keeps the entries of all files of a table.  Almost all of an entry are its
numbers and bounds by column, which are looked at for few files.  So they are kept as bytes, from
which they are made again each time, and what they take is known.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.manifest import DataFile

_PARTITION: Final = 3
#: The positions from ``column_sizes`` to ``equality_ids``: maps by column, key metadata, and lists.
_FIRST, _END = 6, 15
#: What the objects of an entry take beside their fields.
_OBJECT_BYTES: Final = 1_050


class KeptFile(DataFile):  # type: ignore[misc, unused-ignore]
    """The record of a data file or delete file, which does not change once it is packed."""

    _packed: bytes | None = None

    def pack(self) -> int:
        """Keep the maps and lists as bytes. Return how many bytes the entry takes."""
        found = [_plain(self._data[position]) for position in range(_FIRST, _END)]
        self._packed = marshal.dumps(found)
        self._data[_FIRST:_END] = [None] * (_END - _FIRST)
        fields = (self._packed, *self._data, *self._data[_PARTITION]._data)
        return _OBJECT_BYTES + sum(map(sys.getsizeof, fields))

    def __getitem__(self, position: int) -> Any:
        """Return a field by its position."""
        if self._packed is None or not _FIRST <= position < _END:
            return self._data[position]
        # Not bytes of a file: `pack` has made them.
        return marshal.loads(self._packed)[position - _FIRST]  # noqa: S302

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


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
