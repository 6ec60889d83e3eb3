"""Keep entries of manifests in a sixth of the memory that pyiceberg takes for them.

A run that commits keeps the entries of all files of a table. Numbers and bounds by column make up
almost all of an entry, and few files need them. So they are kept as bytes of a known size, and
decoded again at each access:

    a map of numbers    its keys, its values: two arrays, of integers as small as they can be
    a map of bounds     its keys, the lengths of the bounds, all bounds one after the other

These bytes are deflated with those of the manifest's first entry as the dictionary, because all
entries of a table have the same columns.  Equal ids and partitions are one object.

    keeper = EntryKeeper(decoded)                       # one for each manifest
    kept = [keeper.kept(entry) for entry in entries]    # what they take is counted
    kept[0].data_file.whole()                           # pyiceberg's record, made again
"""

from __future__ import annotations

import marshal
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
)
from pyiceberg.typedef import Record

from secure_bloom.running.memory_budget import DecodedBytes

#: The first fields of pyiceberg's record, which are looked at for every file.
_PLAIN: Final = (
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
)
#: The positions of the other fields that pyiceberg names.
_PACKED: Final = {
    "column_sizes": 6,
    "value_counts": 7,
    "null_value_counts": 8,
    "nan_value_counts": 9,
    "lower_bounds": 10,
    "upper_bounds": 11,
    "key_metadata": 12,
    "split_offsets": 13,
    "equality_ids": 14,
    "sort_order_id": 15,
}
#: Types of arrays for numbers that are not negative, from the smallest on.
_UNSIGNED: Final = ("B", "H", "I")
#: A raw deflate stream with a window of 4 KiB.
_WINDOW: Final = -12
#: Fields that are kept deflated count at least as this part of their bytes.
_INFLATED: Final = 4
#: What the objects of an entry take beside the fields that are counted.
_OBJECT_BYTES: Final = 300


@dataclass(eq=False, slots=True, kw_only=True)
class KeptFile:
    """The record of a data file or delete file, with the names and positions of pyiceberg's."""

    content: DataFileContent
    file_path: str
    file_format: FileFormat
    partition: Record
    record_count: int
    file_size_in_bytes: int
    spec_id: int
    #: The fields from ``column_sizes`` on, and the dictionary with which they are inflated.
    _packed: bytes
    _like: bytes

    def __getitem__(self, position: int) -> Any:
        """Return a field by its position."""
        if position < len(_PLAIN):
            return getattr(self, _PLAIN[position])
        return _unpacked(self._fields()[position - len(_PLAIN)])

    def __getattr__(self, name: str) -> Any:
        """Return a packed field by its name."""
        if name not in _PACKED:
            raise AttributeError(name)
        return self[_PACKED[name]]

    def whole(self) -> DataFile:
        """Return pyiceberg's record with all fields, which may be changed."""
        plain = (getattr(self, name) for name in _PLAIN)
        found = DataFile(*plain, *map(_unpacked, self._fields()))
        found.spec_id = self.spec_id
        return found

    def _fields(self) -> list[Any]:
        unpacker = zlib.decompressobj(_WINDOW, self._like)
        # Not bytes of a file: an `EntryKeeper` has made them.
        found: list[Any] = marshal.loads(unpacker.decompress(self._packed))  # noqa: S302
        return found


@dataclass(eq=False, slots=True, kw_only=True)
class KeptEntry:
    """The entry of a manifest with a :class:`KeptFile`."""

    status: ManifestEntryStatus
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    data_file: KeptFile

    def __sizeof__(self) -> int:
        """Return how many bytes the entry takes, with its file's."""
        file = self.data_file
        values = (file._packed, file.file_path, *file.partition._data)
        return _OBJECT_BYTES + sum(map(sys.getsizeof, values))


class EntryKeeper:
    """Makes the kept entries of one manifest, and counts the memory that they take."""

    def __init__(self, decoded: DecodedBytes) -> None:
        self._decoded = decoded
        #: The end of the packed fields of the first entry: deflate looks back no further.
        self._like: bytes | None = None
        #: Ids, sequence numbers and partitions by their texts.
        self._equal: dict[str, Any] = {}

    def kept(self, entry: ManifestEntry) -> KeptEntry:
        """Return an entry in its kept form.

        Raises MemoryBudgetError if all entries that were counted so far exceed the budget.
        """
        file, equal = entry.data_file, self._equal_one
        fields = marshal.dumps([_packed(it) for it in file._data[len(_PLAIN) :]])
        if self._like is None:
            self._like = fields[-(1 << -_WINDOW) :]
            self._decoded.add(len(self._like))
        packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, 5, zdict=self._like)
        found = KeptEntry(
            status=entry.status,
            snapshot_id=equal(entry.snapshot_id),
            sequence_number=equal(entry.sequence_number),
            file_sequence_number=equal(entry.file_sequence_number),
            data_file=KeptFile(
                content=file.content,
                file_path=file.file_path,
                file_format=file.file_format,
                partition=equal(file.partition),
                record_count=file.record_count,
                file_size_in_bytes=file.file_size_in_bytes,
                spec_id=file.spec_id,
                _packed=packer.compress(fields) + packer.flush(),
                _like=self._like,
            ),
        )
        # A small manifest may have entries that deflate to a thousandth: decoding them takes time.
        self._decoded.add(sys.getsizeof(found) + len(fields) // _INFLATED)
        return found

    def _equal_one(self, value: Any) -> Any:
        """Return an equal value of an earlier entry, or this one if there is none."""
        # By its text: a NaN is not equal to itself, and 0.0 is equal to -0.0.  That of a partition
        # has null and "None" alike, that of its fields has not.
        text = repr(value._data if isinstance(value, Record) else value)
        return self._equal.setdefault(text, value)


def _packed(value: Any) -> Any:
    """Return a field in its kept form: a map as arrays in bytes, any other value unchanged."""
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
