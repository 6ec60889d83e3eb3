"""Read deletion vectors of Delta and Paimon tables: the positions of a file's deleted rows.

    inline   Z85 of the data
    file     version 1 (1) | ... | at the offset: size (4, BE) | data | CRC-32 of it (4, BE)
    data     1681511377 (4, LE) | a roaring bitmap of 64 bits

PROTOCOL.md, "Deletion Vector Format".

The numbers are in Roaring bitmaps of 64 bits, all little-endian
(https://github.com/RoaringBitmap/RoaringFormatSpec):

    64 bits   count (8) | count times: the upper 32 bits (4) | a bitmap of 32 bits
    32 bits   12346 (4) | containers (4) | keys | offsets | data
              12347 (2) | containers - 1 (2) | which are runs | keys | offsets, if 4 or more | data
    keys      for each container: the upper 16 bits (2) | how many numbers - 1 (2)
    data      an array of up to 4,096 numbers (2 each), runs (2, then 2 + 2 each), or 65,536 bits
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.lakes.delta.live_file import DeletionVector
from secure_bloom.lakes.delta.log_files import resolve
from secure_bloom.running.memory_budget import MemoryShare, memory_budget, refuse_beyond, reserved
from secure_bloom.storage import join, open_input

if TYPE_CHECKING:
    from secure_bloom.lakes.paimon.table import PaimonVector

#: A deleted row's position takes 8 bytes, and 8 more as the parts of a bitmap are joined.
_POSITION_BYTES: Final = 16
#: What a byte of a vector takes while it is read: a container of one number has six bytes, and
#: becomes a few arrays.
VECTOR_COST: Final = 40
#: What an upper half of numbers counts: it takes time, and files have one or two.
_KEY_COST: Final = 8192
_WHAT: Final = "a deletion vector"
#: Positions that readers of files keep now, of vectors that are larger than this.
_KEPT: Final = MemoryShare(0)
_LARGE: Final = 1 << 20
_MAGIC: Final = (1681511377).to_bytes(4, "little")
_FILE_VERSION = b"\x01"
#: That of Paimon's bitmaps of 32 bits; its bitmaps of 64 bits are those of Delta.
_PAIMON_MAGIC: Final = (1581511376).to_bytes(4, "big")
#: The last characters of a file's name in the log: the Z85 of a UUID.
_ENCODED_UUID = 20
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = {character: value for value, character in enumerate(_Z85)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRows:
    """The deleted rows of a file of the table in ``folder``. They are read when they are needed."""

    folder: str
    vector: DeletionVector

    def positions(self, rows: int) -> NDArray[np.int64]:
        """Return the positions of deleted rows in a file of ``rows`` rows, ascending.

        Raises FormatError for a vector that is damaged or belongs to another file.
        """
        with located(path=self.folder):
            data = _data(self.folder, self.vector)
            return _rows(data, rows, self.vector.cardinality)


def checked_vector(framed: bytes, rows: int, cardinality: int) -> NDArray[np.int64]:
    """Return the positions in a vector that is framed by its size and its checksum.

    ``cardinality`` is the number of positions that the table's log gives.  Raises FormatError for a
    vector that is damaged or belongs to a file with other rows.
    """
    return _rows(_unframed(framed), rows, cardinality)


def _rows(data: bytes, rows: int, cardinality: int) -> NDArray[np.int64]:
    if data[:4] != _MAGIC:
        raise FormatError("a deletion vector does not begin with its magic number")
    with _decoding(len(data), cardinality):
        # Its rows were counted in the log, so that no more memory is taken than a reader has
        # agreed to.
        found = positions(data[4:], most=min(rows, cardinality))
    if len(found) != cardinality:
        raise FormatError(f"a deletion vector has {len(found)} rows, the log says {cardinality}")
    if len(found) and found[-1] >= rows:
        raise FormatError(f"a deletion vector has row {found[-1]}, the file has {rows} rows")
    return _kept(found)


@contextmanager
def _decoding(size: int, numbers: int) -> Iterator[None]:
    """Reserve the memory that decoding a deletion vector takes, while the block runs.

    The vector has ``size`` bytes and ``numbers`` positions. All threads share one memory budget.
    Raises MemoryBudgetError if a single vector takes more than the whole budget.
    """
    takes = numbers * _POSITION_BYTES + VECTOR_COST * size
    refuse_beyond(takes, _WHAT)
    with reserved(takes):
        yield


def _kept(found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the positions of a vector against the memory budget until they are freed.

    Raises MemoryBudgetError if the positions of all files that are read now exceed the budget.
    """
    if found.nbytes >= _LARGE:
        account = _KEPT.account()
        _KEPT.most = memory_budget()
        if not account.take(found.nbytes):
            refuse_beyond(_KEPT.used + found.nbytes, "what deletion vectors delete")
        weakref.finalize(found, account.close).atexit = False
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonDeletedRows:
    """The deleted rows of a file of a Paimon table. They are read when they are needed."""

    vector: PaimonVector

    def positions(self, rows: int) -> NDArray[np.int64]:
        """Return the positions of deleted rows in a file of ``rows`` rows, ascending.

        Raises FormatError for a vector that is damaged or belongs to another file.
        """
        # Imported here: reading files of other tables loads no module of Paimon's.
        from secure_bloom.lakes.paimon.table import read_vector

        with located(path=self.vector.path):
            counted = self.vector.cardinality
            most = rows if counted is None else min(rows, counted)
            with _decoding(self.vector.length, counted or 0):
                data = _unframed(read_vector(self.vector))
                if data[:4] == _MAGIC:
                    found = positions(data[4:], most=most)
                elif data[:4] == _PAIMON_MAGIC:
                    cursor = _Cursor(data[4:])
                    found = _bitmap32(cursor, 0, most)
                    if cursor.left:
                        raise FormatError(f"{cursor.left} bytes follow a bitmap")
                else:
                    raise FormatError("a deletion vector does not begin with its magic number")
            if len(found) and found[-1] >= rows:
                raise FormatError(
                    f"a deletion vector has row {found[-1]}, the file has {rows} rows"
                )
            if self.vector.cardinality not in (None, len(found)):
                raise FormatError(
                    f"a deletion vector has {len(found)} rows, the manifest says "
                    f"{self.vector.cardinality}"
                )
            return _kept(found)


def _data(folder: str, vector: DeletionVector) -> bytes:
    if vector.storage_type == "i":
        data = decode_z85(vector.path_or_inline_dv)
        # Z85 writes four bytes at a time, so up to three more may follow what counts.
        if not 0 <= len(data) - vector.size_in_bytes < 4:
            raise FormatError(
                f"an inline deletion vector has {len(data)} bytes, the log says "
                f"{vector.size_in_bytes}"
            )
        return data[: vector.size_in_bytes]
    if vector.storage_type == "u":
        return _stored(_file_of_uuid(folder, vector.path_or_inline_dv), vector)
    if vector.storage_type == "p":
        return _stored(resolve(folder, vector.path_or_inline_dv), vector)
    raise UnsupportedFeatureError("a deletion vector is stored in a way that is not known here")


def _file_of_uuid(folder: str, text: str) -> str:
    # Before the UUID is the name of a folder of any length, mostly an empty one.
    prefix, encoded = text[:-_ENCODED_UUID], text[-_ENCODED_UUID:]
    uuid = decode_z85(encoded)
    if len(uuid) != 16:
        raise FormatError("the name of a deletion vector's file holds no UUID")
    name = f"deletion_vector_{UUID(bytes=uuid)}.bin"
    return resolve(folder, f"{prefix}/{name}") if prefix else join(folder, name)


def _stored(path: str, vector: DeletionVector) -> bytes:
    if vector.offset is None:
        raise FormatError("a deletion vector in a file has no offset")
    with located(path=path), open_input(path) as file:
        refuse_beyond(VECTOR_COST * vector.size_in_bytes, _WHAT)
        if file.read_at(0, 1) != _FILE_VERSION:
            raise FormatError("the file of deletion vectors is not of version 1")
        # The size and the checksum around it have four bytes each.
        framed = file.read_at(vector.offset, vector.size_in_bytes + 8)
        return _unframed(framed)


def _unframed(framed: bytes) -> bytes:
    data = framed[4:-4]
    # Big-endian around data that is little-endian: PROTOCOL.md has it so, and Iceberg after it.
    if (size := int.from_bytes(framed[:4], "big")) != len(data):
        raise FormatError(f"a deletion vector has {len(data)} bytes, its length field says {size}")
    # The checksum covers the data alone, neither its size nor its place.
    if int.from_bytes(framed[-4:], "big") != zlib.crc32(data):
        raise FormatError("the checksum of a deletion vector is wrong")
    return data


def decode_z85(text: str) -> bytes:
    """Return the bytes of a text in Z85, in which five characters are four bytes."""
    if len(text) % 5:
        raise FormatError("a text in Z85 is cut short")
    parts = []
    for start in range(0, len(text), 5):
        number = 0
        for character in text[start : start + 5]:
            if character not in _DIGITS:
                raise FormatError("a text in Z85 has a character that Z85 does not use")
            number = number * 85 + _DIGITS[character]
        # Five characters can write more than four bytes hold: 85^5 is larger than 2^32.
        if number >= 2**32:
            raise FormatError("a text in Z85 has a number that is too large")
        parts.append(number.to_bytes(4, "big"))
    return b"".join(parts)


_NO_RUNS, _WITH_RUNS = 12346, 12347
#: A bitmap with runs and at least this many containers has offsets too.
_OFFSETS_FROM: Final = 4
_LONGEST_ARRAY: Final = 4096
_BITSET_BYTES: Final = 8192
#: An upper half of numbers, and a bitmap without a container.
_LEAST_BITMAP: Final = 12
#: Containers are read together up to about 2 to the power of this many numbers.
_TOGETHER: Final = 20
_U16 = np.dtype("<u2")
_Numbers: TypeAlias = NDArray[np.int64]


def positions(data: bytes, *, most: int) -> NDArray[np.int64]:
    """Return the numbers in a bitmap, ascending.

    Raises FormatError for a damaged bitmap, or for more than ``most`` numbers.
    """
    cursor = _Cursor(data)
    parts: list[NDArray[np.int64]] = []
    last_key, before, count = -1, 0, cursor.number(8)
    if count * _LEAST_BITMAP > cursor.left:
        raise FormatError(f"{cursor.left} bytes cannot hold {count} bitmaps")
    refuse_beyond(count * _KEY_COST, _WHAT)
    for _ in range(count):
        key = cursor.number(4)
        # Positions are signed numbers of 64 bits, so the upper half ends at 2^31.
        if not last_key < key < 2**31:
            raise FormatError("the parts of a bitmap are out of order")
        last_key = key
        found = _bitmap32(cursor, before, most)
        before += len(found)
        parts.append(found + (key << 32))
    if cursor.left:
        raise FormatError(f"{cursor.left} bytes follow a bitmap")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


class _Cursor:
    """Bytes that are read one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that are left."""
        return len(self._data) - self._at

    def bytes(self, count: int) -> bytes:
        """Return the next bytes. Raises FormatError if there are too few."""
        if count > self.left:
            raise FormatError(f"a bitmap wants {count} bytes, {self.left} are left")
        start, self._at = self._at, self._at + count
        return self._data[start : self._at]

    def number(self, width: int) -> int:
        """Return the next number."""
        return int.from_bytes(self.bytes(width), "little")

    def numbers(self, count: int) -> _Numbers:
        """Return the next numbers of two bytes."""
        return np.frombuffer(self.bytes(2 * count), _U16).astype(np.int64)


def _bitmap32(cursor: _Cursor, before: int, most: int) -> NDArray[np.int64]:
    count, are_runs, has_offsets = _cookie(cursor)
    keys = cursor.numbers(2 * count).reshape(-1, 2)
    # One less is stored here too, so that 65,536 numbers fit into two bytes.
    sizes = keys[:, 1] + 1
    # Checked before any container is built: a run of a few bytes means 65,536 numbers.
    if before + int(sizes.sum()) > most:
        raise FormatError(f"a bitmap has more than {most} numbers")
    # Not every log says how many there are.
    refuse_beyond((before + int(sizes.sum())) * _POSITION_BYTES, _WHAT)
    if (np.diff(keys[:, 0]) <= 0).any():
        raise FormatError("the containers of a bitmap are out of order")
    if has_offsets:
        # Offsets of containers: passed over, because all containers are read in their order.
        cursor.bytes(4 * count)
    starts = keys[:, 0] << 16
    is_array = ~are_runs & (sizes <= _LONGEST_ARRAY)
    # Containers of one kind that follow each other are read together: most have few bytes.
    kinds = 2 * are_runs + is_array
    is_end = (np.diff(kinds) != 0) | (np.diff(np.cumsum(sizes) >> _TOGETHER) != 0)
    bounds = [0, *(np.flatnonzero(is_end) + 1).tolist(), count]
    parts = [
        _CONTAINERS[int(kinds[first])](cursor, starts[first:last], sizes[first:last])
        for first, last in pairwise(bounds)
        if first < last
    ]
    found = np.concatenate(parts) if parts else np.empty(0, np.int64)
    if (found[1:] <= found[:-1]).any():
        raise FormatError("the numbers of a bitmap are out of order")
    return found


def _cookie(cursor: _Cursor) -> tuple[int, NDArray[np.bool_], bool]:
    """Return the number of containers, which of them have runs, and whether offsets follow."""
    cookie = cursor.number(2)
    if cookie == _WITH_RUNS:
        # One less is stored: no bitmap with runs is empty.
        count = cursor.number(2) + 1
        marks = np.frombuffer(cursor.bytes((count + 7) // 8), np.uint8)
        are_runs = np.unpackbits(marks, bitorder="little")[:count].astype(np.bool_)
        return count, are_runs, count >= _OFFSETS_FROM
    # This cookie has four bytes, the other one two: the upper half is zero here, and a count there.
    if cookie == _NO_RUNS and cursor.number(2) == 0:
        count = cursor.number(4)
        return count, np.zeros(min(count, 2**16), np.bool_), True
    raise FormatError("a bitmap does not begin with a known cookie")


def _arrays(cursor: _Cursor, starts: _Numbers, sizes: _Numbers) -> _Numbers:
    return np.repeat(starts, sizes) + cursor.numbers(int(sizes.sum()))


def _bitsets(cursor: _Cursor, starts: _Numbers, sizes: _Numbers) -> _Numbers:
    bits = np.frombuffer(cursor.bytes(_BITSET_BYTES * len(starts)), np.uint8)
    rows = np.unpackbits(bits.reshape(len(starts), -1), axis=1, bitorder="little")
    _check_sizes(rows.sum(axis=1, dtype=np.int64), sizes)
    container, number = np.nonzero(rows)
    return starts[container] + number


def _runs(cursor: _Cursor, starts: _Numbers, sizes: _Numbers) -> _Numbers:
    """Return the numbers in runs: each run has its first number, and how many follow."""
    counts, pieces = [], []
    for _ in range(len(starts)):
        counts.append(cursor.number(2))
        pieces.append(cursor.bytes(4 * counts[-1]))
    runs = np.frombuffer(b"".join(pieces), _U16).astype(np.int64).reshape(-1, 2)
    first, lengths = runs[:, 0], runs[:, 1] + 1
    if (first + lengths > 2**16).any():
        raise FormatError("the runs of a container do not add up")
    container = np.repeat(np.arange(len(starts)), counts)
    _check_sizes(np.bincount(container, lengths, len(starts)).astype(np.int64), sizes)
    # A step of one from number to number, and a jump at the first of each run.
    ends = np.cumsum(lengths)
    offsets = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    found: _Numbers = np.repeat(starts[container] + first, lengths) + offsets
    return found


def _check_sizes(found: _Numbers, wanted: _Numbers) -> None:
    if (found != wanted).any():
        raise FormatError("a container of a bitmap does not have as many numbers as its key says")


#: The reader of containers: of bitsets, of arrays, of runs.
_CONTAINERS: Final = (_bitsets, _arrays, _runs)
