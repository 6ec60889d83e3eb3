"""Read deletion vectors of Delta tables: the positions of a file's deleted rows.

    inline   Z85 of the data
    file     version 1 (1) | ... | at the offset: size (4, BE) | data | CRC-32 of it (4, BE)
    data     1681511377 (4, LE) | a roaring bitmap of 64 bits

PROTOCOL.md, "Deletion Vector Format".
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from secure_bloom.errors import FormatError, UnsupportedFeatureError, located
from secure_bloom.storage import join, open_input
from secure_bloom.storage.memory_budget import refuse_beyond
from secure_bloom.tables.live_file import DeletionVector
from secure_bloom.tables.log_paths import resolve
from secure_bloom.tables.roaring_bitmaps import positions

#: A deleted row's position takes 8 bytes, and 8 more as the parts of a bitmap are joined.
_POSITION_BYTES: Final = 16
_MAGIC: Final = (1681511377).to_bytes(4, "little")
_FILE_VERSION = b"\x01"
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
    refuse_beyond(cardinality * _POSITION_BYTES, "its deletion vector")
    if data[:4] != _MAGIC:
        raise FormatError("a deletion vector does not begin with its magic number")
    # Its rows were counted in the log, so that no more memory is taken than a reader has agreed to.
    found = positions(data[4:], most=min(rows, cardinality))
    if len(found) != cardinality:
        raise FormatError(f"a deletion vector has {len(found)} rows, the log says {cardinality}")
    if len(found) and found[-1] >= rows:
        raise FormatError(f"a deletion vector has row {found[-1]}, the file has {rows} rows")
    return found


def _data(folder: str, vector: DeletionVector) -> bytes:
    if vector.storage_type == "i":
        return _inline(vector)
    if vector.storage_type == "u":
        return _stored(_file_of_uuid(folder, vector.path_or_inline_dv), vector)
    if vector.storage_type == "p":
        return _stored(resolve(folder, vector.path_or_inline_dv), vector)
    raise UnsupportedFeatureError("a deletion vector is stored in a way that is not known here")


def _inline(vector: DeletionVector) -> bytes:
    data = decode_z85(vector.path_or_inline_dv)
    # Z85 writes four bytes at a time, so up to three more may follow what counts.
    if not 0 <= len(data) - vector.size_in_bytes < 4:
        raise FormatError("an inline deletion vector has another size than the log says")
    return data[: vector.size_in_bytes]


def _file_of_uuid(folder: str, text: str) -> str:
    # In front of the UUID stands the name of a folder of any length, mostly none.
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
        if file.read_at(0, 1) != _FILE_VERSION:
            raise FormatError("the file of deletion vectors is not of version 1")
        # The size and the checksum around it have four bytes each.
        framed = file.read_at(vector.offset, vector.size_in_bytes + 8)
        return _unframed(framed)


def _unframed(framed: bytes) -> bytes:
    data = framed[4:-4]
    # Big-endian around data that is little-endian: PROTOCOL.md has it so, and Iceberg after it.
    if int.from_bytes(framed[:4], "big") != len(data):
        raise FormatError("a deletion vector has another size than the log says")
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
